"""(policy, request) -> matches, matches not, cannot tell, or needs a fact: rules, selectors, matchConditions."""
