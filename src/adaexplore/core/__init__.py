"""The nouns, and every Protocol that a user may implement.

- `evaluator.Evaluator`: judges candidates of a problem.
- `proposer.Proposer`: writes candidates.
- `client.Client`: answers prompts; any callable from a `Prompt` to a text or a `Reply` does too.
- `policy.Policy`: chooses where the search tree grows next.
- `store.Store`: keeps a run.
- `listener.Listener`: receives the events of a search.
"""
