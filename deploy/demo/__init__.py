"""docker-compose.yml's services as processes: ``python -m deploy.demo``."""
