-- When the youngest message was made that was removed for its age: the host may tell it and older ones again, and they
-- are not taken then. NULL while none was removed.
ALTER TABLE passage_statistics ADD COLUMN removed_up_to_us bigint;
