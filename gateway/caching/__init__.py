"""The verdict cache between reviews: memory, Redis, single flight, sealed entries.

``CachingCaller`` uses it in front of the workers of one configuration; ``VerdictCache`` outlives configurations. (The
memo of one review is part of ``gateway.engine``.)
"""
