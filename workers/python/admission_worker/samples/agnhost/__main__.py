"""``python -m admission_worker.samples.agnhost``: serve the policies of Kubernetes' reference webhook."""

from admission_worker.samples.agnhost import worker

if __name__ == "__main__":
    worker.main()
