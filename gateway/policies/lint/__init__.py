"""What `check` warns of: valid, and probably not meant."""
