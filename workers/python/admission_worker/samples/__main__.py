"""``python -m admission_worker.samples``: serve the sample policies."""

from admission_worker.samples import worker

if __name__ == "__main__":
    worker.main()
