"""What a policy, a worker and an entry are: bytes in, a configuration and its errors out."""
