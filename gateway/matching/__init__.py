"""Whether a policy matches a request: yes, no, undecidable, or a fact is missing. Rules, selectors, matchConditions."""
