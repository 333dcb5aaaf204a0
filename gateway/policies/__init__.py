"""What a policy and a worker are: bytes in, a configuration and its errors out."""
