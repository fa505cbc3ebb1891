"""What services need from the world: small protocols, each stating its whole contract."""
