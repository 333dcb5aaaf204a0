"""What the project is built from: read from its locks, as an SBOM, and compared with what is published."""
