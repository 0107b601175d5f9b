"""A client without a provider."""

from adaexplore.core.protocols.client import Reply, Usage


class FakeClient:
    """Gives each of `answers` in turn: a reply, a text, or an error to raise."""

    def __init__(self, *answers, model="openai:gpt-5-mini"):
        self.model = model
        self.answers = list(answers)
        self.asked = []
        self.closed = False

    def ask(self, prompt):
        self.asked.append(prompt)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, str):
            return Reply(answer, self.model, usage=Usage(100, 20, cost_usd=0.01))
        return answer

    def close(self):
        self.closed = True
