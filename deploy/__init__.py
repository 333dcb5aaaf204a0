"""What a cluster needs to run the gateway; a package only so that ``python -m deploy.generator`` makes the CRDs."""
