"""What a memory is, and every rule about it. No IO, no clock, no randomness, no third-party imports."""
