"""The engine: a review in, asks out, answers in, a decision out. No sockets, no clock: h11 for admission reviews."""
