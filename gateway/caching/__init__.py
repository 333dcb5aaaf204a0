"""Verdicts kept between reviews: memory, Redis, single flight, sealed entries.

``CachingAsker`` stands in front of the workers of one configuration; ``VerdictCache`` outlives configurations. (The
memo of one review is not here: it is the engine's own, in ``gateway.engine``.)
"""
