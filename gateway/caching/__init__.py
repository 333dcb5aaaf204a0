"""Verdicts kept between reviews: memory, Redis, single flight, sealed entries. Nothing is kept between reviews yet.

(The memo of one review is not here: it is the heart's own, in ``gateway.deciding``.)
"""
