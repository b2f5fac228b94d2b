"""An agent in memory that can be made to behave in any way, and a conversation with it."""

from attrs import define, field

from orchestrator.acp.agent import AcpAgent
from orchestrator.acp.process import Command, Exit
from orchestrator.acp.runtime import Runtime
from orchestrator.settings.model import Watchdogs
from orchestrator.turn.effects import Payload
from tests.acp.wires import MemoryWire

MODEL = {
    "id": "model",
    "category": "model",
    "currentValue": "big",
    "options": [{"value": "big"}, {"value": "small"}],
}


@define(eq=False)
class Attempt:
    """An attempt of the runner, without the runner."""

    number: int = 1
    payload: Payload = Payload.VERBATIM
    prompt: object = "fix the tests"
    heard: list = field(factory=list)

    def text(self, chunk):
        self.heard.append(("text", chunk))

    def thought(self):
        self.heard.append("thought")

    def tool(self):
        self.heard.append("tool")

    def retrying(self, title, category):
        self.heard.append(("retrying", title))

    def advise(self, key, title):
        self.heard.append(("advise", title))


CONTINUED = Attempt(2, Payload.CONTINUE, "Please continue.")


@define(eq=False)
class Double:
    """An agent in memory.  Change `answers` to make it behave."""

    capabilities: dict = field(factory=lambda: {"loadSession": True})
    answers: dict = field(factory=dict)
    """Method to what follows: a result, or a function of the message to delayed frames."""
    model: str = "big"
    sessions: int = 0
    wires: list = field(factory=list)

    def spawn(self, command):
        self.wires.append(MemoryWire(self.take, Exit(3)))
        return self.wires[-1]

    def take(self, message):
        method, number = message.get("method"), message.get("id")
        known = {
            "initialize": {"protocolVersion": 1, "agentCapabilities": self.capabilities},
            "session/load": self.options,
            "session/prompt": self.say("done"),
            **self.answers,
        }
        if method == "session/new" and method not in self.answers:
            self.sessions += 1
            return answer(number, {"sessionId": f"s{self.sessions}", **self.options})
        if method == "session/set_config_option" and method not in self.answers:
            self.model = message["params"]["value"]
            return answer(number, self.options)
        what = known.get(method)
        if callable(what):
            return what(message)
        return answer(number, what) if number is not None and what is not None else []

    @property
    def options(self):
        return {"configOptions": [{**MODEL, "currentValue": self.model}]}

    def say(self, *words, end="end_turn"):
        def frames(message):
            session = message["params"]["sessionId"]
            texts = [(0.0, text(session, word)) for word in words]
            return [*texts, *answer(message["id"], {"stopReason": end})]

        return frames

    @property
    def methods(self):
        return [wire.methods() for wire in self.wires]

    def prompts(self):
        """The text blocks of every prompt, over all processes."""
        sent = [message for wire in self.wires for message in wire.sent]
        return [
            [block["text"] for block in message["params"]["prompt"]]
            for message in sent
            if message.get("method") == "session/prompt"
        ]


def answer(number, result):
    return [(0.0, {"jsonrpc": "2.0", "id": number, "result": result})]


def fail(code, message, data=None):
    def frames(request):
        error = {"code": code, "message": message, "data": data}
        return [(0.0, {"jsonrpc": "2.0", "id": request["id"], "error": error})]

    return frames


def text(session, word):
    update = {
        "sessionUpdate": "agent_message_chunk",
        "messageId": "m",
        "content": {"type": "text", "text": word},
    }
    return updated(session, update)


def updated(session, update):
    params = {"sessionId": session, "update": update}
    return {"jsonrpc": "2.0", "method": "session/update", "params": params}


class Talk:
    """A conversation with a double."""

    def __init__(self, double, watchdogs=None, **more):
        self.runtime = Runtime(
            Command(("/bin/double",), "/project"),
            watchdogs or Watchdogs(),
            spawn=double.spawn,
            wall=lambda: 0.0,
            **more,
        )
        self.agent = AcpAgent(self.runtime)

    async def __aenter__(self):
        await self.runtime.__aenter__()
        return self.agent

    async def __aexit__(self, *exc):
        return await self.runtime.__aexit__(*exc)
