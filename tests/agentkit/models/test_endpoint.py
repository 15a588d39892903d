"""Models behind servers, over a real socket: what is kept of samples, and every way a server can fail."""

from __future__ import annotations

import json
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentkit import Agent
from agentkit.errors import ModelFailed
from agentkit.models import (
    Continuation,
    EndpointAnswerError,
    EndpointError,
    EndpointModel,
    EndpointOptions,
    EndpointRefused,
    EndpointStuck,
    EndpointUnavailable,
    FinishReason,
    Generation,
    Message,
    ModelNotFoundError,
    Patience,
    PrefixLike,
    Sample,
    Sampling,
    SessionError,
    StopPolicy,
    resolve_model,
)
from agentkit.models.samples import keep
from aufbau import Grammar, Oracle, Verdict
from dialects import CLikeDialect
from episodes import Episode
from registry import INT, builtin

pytest.importorskip("httpx", reason="endpoints need the extra endpoint")

Request = dict[str, Any]
KEY = "sk-secret-key"
QUICK = Patience(timeout=5, tries=3, pause=0.01, longest_pause=0.02)


class Raw:
    """A whole HTTP answer, byte for byte, after a delay."""

    def __init__(self, status: int, body: bytes, *, headers: dict[str, str] | None = None, delay: float = 0) -> None:
        self.status, self.body, self.headers, self.delay = status, body, headers or {}, delay


def said(text: str | None, finish: str = "stop", **usage: Any) -> Raw:
    """A chat completion."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish}
    body = {"id": "1", "object": "chat.completion", "choices": [choice], **({"usage": usage} if usage else {})}
    return Raw(200, json.dumps(body).encode())


class Server:
    """A server on a port of this machine whose answers a function gives."""

    def __init__(self, answer: Callable[[Request], Raw]) -> None:
        self.requests: list[Request] = []
        self.headers: list[dict[str, str]] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                server.requests.append(body)
                server.headers.append(dict(self.headers.items()))
                raw = answer(body)
                time.sleep(raw.delay)
                try:
                    self.send_response(raw.status)
                    for name, value in {"Content-Length": str(len(raw.body)), **raw.headers}.items():
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(raw.body)
                except OSError:
                    pass  # the client has gone, which some tests want
                self.close_connection = "Content-Length" in raw.headers

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


Serve = Callable[..., Server]


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """Start servers: of given answers one after the other, or of a function of the request."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    servers: list[Server] = []

    def start(*answers: Raw | str | Callable[[Request], Raw]) -> Server:
        rest = [said(one) if isinstance(one, str) else one for one in answers]

        def answer(request: Request) -> Raw:
            one = rest[0] if len(rest) == 1 else rest.pop(0)
            return one if isinstance(one, Raw) else one(request)

        servers.append(Server(answer))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


def model(server: Server, continuation: Continuation = Continuation.AUTO, **options: Any) -> EndpointModel:
    given = EndpointOptions(continuation=continuation, patience=QUICK, **options)
    return EndpointModel(server.url, "tiny", api_key=KEY, options=given)


def generate(
    model: EndpointModel, prefix: PrefixLike | None = None, backend: str = "asyncio", **changed: Any
) -> tuple[Generation, tuple[Sample, ...]]:
    async def main() -> tuple[Generation, tuple[Sample, ...]]:
        session = model.session()
        try:
            given: dict[str, Any] = {
                "sampling": Sampling(seed=1),
                "max_tokens": 200,
                "stop_policy": StopPolicy.STRICT,
                **changed,
            }
            generation = await session.generate([Message(role="user", content="go")], prefix=prefix, **given)
            return generation, session.samples
        finally:
            await session.aclose()

    return anyio.run(main, backend=backend)


@cache
def step() -> PrefixLike:
    registry = builtin()
    return CLikeDialect().lower(registry).start({"d": registry.find_type("docs")}, INT)


FUN = Oracle(Grammar.load("fun"))

# sample, what was begun, what is kept, what is rejected
READINGS = [
    ("let n = count(d);", "", "let n = count(d);", ""),
    ("let n = count(d);\nreturn n;", "", "let n = count(d);\n", "return n;"),
    ("let n = count(3);", "", "let n = count(", "3);"),
    ("```c\nlet n = count(d);\n```\nThis counts.", "", "let n = count(d);\n", ""),
    ("Sure! Here it is:\n```\nreturn 3;\n```", "", "return 3;\n", ""),
    ("  let n = count(d);", "", "let n = count(d);", ""),
    # asked to go on, it begins again
    ("let n = count(d);", "let n = co", "unt(d);", ""),
    ("n = count(d);", "let n = co", "unt(d);", ""),
    # inside a string almost all is live, but this is a beginning
    ('let e = search("coffee");', 'let e = search("', 'coffee");', ""),
    ("I can't do that.", "", "", "I can't do that."),
    ("", "", "", ""),
]


@pytest.mark.parametrize(("sample", "begun", "kept", "rejected"), READINGS)
def test_of_a_sample_the_longest_live_part_is_kept(sample: str, begun: str, kept: str, rejected: str) -> None:
    got = keep(sample, begun, step().feed(begun.encode()))
    assert (got.accepted.strip(), got.rejected) == (kept.strip(), rejected)
    assert got.prefix.verdict is not Verdict.LOST


@settings(max_examples=60, deadline=None)
@given(st.text(st.sampled_from("let n=coutrd(;)3é "), max_size=30))
def test_what_is_kept_is_live_and_one_character_more_is_not(sample: str) -> None:
    start = step()
    got = keep(sample, "", start)
    assert start.try_feed(got.accepted.encode()) is not Verdict.LOST
    if got.rejected:
        assert start.try_feed((got.accepted + got.rejected[0]).encode()) is Verdict.LOST


def test_the_model_goes_on_from_what_was_kept(serve: Serve) -> None:
    server = serve("let n = count(3);", "d);")
    samples: list[Sample] = []
    given = EndpointOptions(continuation=Continuation.MESSAGE, patience=QUICK)
    endpoint = EndpointModel(server.url, "tiny", options=given, on_sample=samples.append)
    generation, reported = generate(endpoint, step())
    assert (generation.text, generation.finish) == ("let n = count(d);", FinishReason.SATISFIED)
    assert [(one.accepted, one.rejected) for one in samples] == [("let n = count(", "3);"), ("d);", "")]
    assert tuple(samples) == reported
    assert [record.text for record in generation.tokens] == [b"let n = count(", b"d);"]
    assert server.requests[0]["messages"] == [{"role": "user", "content": "go"}]
    assert server.requests[1]["messages"][-1] == {"role": "assistant", "content": "let n = count("}


def test_a_refused_sample_is_not_asked_for_again(serve: Serve) -> None:
    server = serve("nonsense")
    with pytest.raises(EndpointStuck) as caught:
        generate(model(server, attempts=5), step())
    assert (caught.value.text, caught.value.rejected) == ("", ("nonsense",) * 5)
    assert "'nonsense'" in str(caught.value) and KEY not in str(caught.value)
    temperatures = [request["temperature"] for request in server.requests]
    assert temperatures[0] == 0 and temperatures == sorted(temperatures) and temperatures[-1] > 0.9
    assert len({request["seed"] for request in server.requests}) == 5


def test_a_refused_sample_is_told_what_may_come(serve: Serve) -> None:
    server = serve("nonsense", "let n = count(3);", "d);")
    generation, _ = generate(model(server, Continuation.QUOTED), step())
    assert generation.text == "let n = count(d);"
    again, quoted = (request["messages"][-1]["content"] for request in server.requests[1:])
    assert again.startswith("Not so. 'nonsense' cannot come there. What may come there: 'let'")
    assert "let n = count(\n" in quoted
    assert "'3);' cannot come there. What may come there: 'docs', d : docs." in quoted


def test_a_word_is_given_up_where_nothing_goes_on(serve: Serve) -> None:
    # What it writes after "c" no step admits, and it never begins anew.
    def answer(request: Request) -> Raw:
        begun = request["messages"][-1]["content"]
        if begun == "go":
            return said("let n = c", "length")
        return said("count(d);" if begun.endswith("= ") else "ats")

    generation, samples = generate(model(serve(answer), Continuation.MESSAGE), step())
    assert generation.text == "let n = count(d);"
    assert [sample.retreated for sample in samples] == [0, 0, 0, 1]
    assert b"".join(record.text for record in generation.tokens) == b"let n = count(d);"


def test_a_model_that_begins_anew_may(serve: Serve) -> None:
    server = serve("let dnonsense", "return 3;")
    generation, samples = generate(model(server, Continuation.MESSAGE), step())
    assert (generation.text, generation.finish) == ("return 3;", FinishReason.SATISFIED)
    assert samples[-1].retreated == len(samples[0].accepted) > 0
    assert [record.text for record in generation.tokens] == [b"return 3;"]


def test_a_server_that_refuses_to_continue_is_asked_by_quoting(serve: Serve) -> None:
    def answer(request: Request) -> Raw:
        if request["messages"][-1]["role"] == "assistant":
            return Raw(400, b'{"error": {"message": "the last message must be the user\'s"}}')
        return said("let n = count(d);" if len(request["messages"]) > 1 else "let n = count(")

    endpoint = model(serve(answer))
    generation, samples = generate(endpoint, step())
    assert generation.text == "let n = count(d);"
    assert [sample.continued for sample in samples] == [False, False]
    assert endpoint.quotes
    with pytest.raises(EndpointRefused, match="must be the user's"):
        generate(model(serve(answer), Continuation.MESSAGE), step())


def test_extra_fields_are_sent_where_they_belong(serve: Serve) -> None:
    server = serve("let n = count(", "d);")
    flags = {"continue_final_message": True}
    generate(model(server, Continuation.MESSAGE, extra={"top_k": 5}, extra_continued=flags), step())
    assert [request["top_k"] for request in server.requests] == [5, 5]
    assert [request.get("continue_final_message") for request in server.requests] == [None, True]


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_free_text_ends_at_a_stop_string(serve: Serve, backend: str) -> None:
    server = serve(said("// so: think\nlet x", "stop", prompt_tokens=10, completion_tokens=6))
    generation, _ = generate(model(server), None, backend, stop=("\n",), assistant_prefill="// so:")
    assert (generation.text, generation.finish) == (" think", FinishReason.STOP)
    assert server.requests[0]["stop"] == ["\n"]
    assert (generation.usage.prompt_tokens, generation.usage.generated_tokens) == (10, 6)


def test_what_the_server_counts_is_the_usage(serve: Serve) -> None:
    usage: Request = {"prompt_tokens": 30, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 20}}
    generation, _ = generate(model(serve(said("return 3;", **usage))), step())
    used = generation.usage
    assert (used.prompt_tokens, used.cached_tokens, used.prefilled_tokens, used.generated_tokens) == (30, 20, 10, 7)


def test_budgets_and_policies_end_texts(serve: Serve) -> None:
    cut = serve(said('let e = search("aaaaaaaaaaaa', "length", completion_tokens=10))
    generation, _ = generate(model(cut), step(), max_tokens=10)
    assert (generation.finish, len(cut.requests)) == (FinishReason.LENGTH, 1)
    generation, _ = generate(model(serve("let n =")), step(), stop_policy=StopPolicy.PAPER)
    assert (generation.finish, generation.text) == (FinishReason.STOP, "let n =")
    # A text that could go on ends where the model ends it, or would go on with what no text admits.
    for sample in ("1 + 2", "1 + 2\n```\nThat is three."):
        generation, _ = generate(model(serve(sample)), FUN.start(goal="Int"))
        assert (generation.finish, generation.text.strip()) == (FinishReason.STOP, "1 + 2")


ERRORS: list[tuple[Raw, type[EndpointError], str, int]] = [
    (Raw(429, b'{"error": {"message": "slow down"}}'), EndpointUnavailable, "slow down", 3),
    (Raw(500, b"oops"), EndpointUnavailable, "HTTP 500: oops", 3),
    (Raw(503, b""), EndpointUnavailable, "an empty answer", 3),
    (Raw(401, b'{"error": {"message": "no such key"}}'), EndpointRefused, "no such key", 1),
    (Raw(404, b"<html>" + b"x" * 5000), EndpointRefused, "HTTP 404", 1),
    (Raw(200, b'{"choices": [{"mess'), EndpointAnswerError, "no JSON", 1),
    (Raw(200, b'{"choices": []}'), EndpointAnswerError, "no choices", 1),
    (Raw(200, b"[1]"), EndpointAnswerError, "no choices", 1),
    (Raw(200, b'{"cho', headers={"Content-Length": "5000"}), EndpointUnavailable, "RemoteProtocolError", 3),
]


@pytest.mark.parametrize(("raw", "kind", "told", "requests"), ERRORS)
def test_errors_of_the_server(serve: Serve, raw: Raw, kind: type[EndpointError], told: str, requests: int) -> None:
    server = serve(raw)
    with pytest.raises(kind, match=told) as caught:
        generate(model(server), step())
    assert (len(server.requests), caught.value.url) == (requests, f"{server.url}/chat/completions")
    assert KEY not in str(caught.value) and len(str(caught.value)) < 600


def test_a_passing_fault_is_outlived(serve: Serve) -> None:
    server = serve(Raw(429, b"", headers={"Retry-After": "0.01"}), Raw(502, b""), "return 3;")
    generation, samples = generate(model(server), step())
    assert (generation.text, len(samples), len(server.requests)) == ("return 3;", 1, 3)
    # The same request, not another sample.
    assert len({json.dumps(request, sort_keys=True) for request in server.requests}) == 1
    assert {headers["Authorization"] for headers in server.headers} == {f"Bearer {KEY}"}


def test_a_server_that_is_slow_or_away(serve: Serve) -> None:
    slow = serve(Raw(200, b"", delay=1.5))
    options = EndpointOptions(patience=Patience(timeout=0.1, tries=2, pause=0.01))
    with pytest.raises(EndpointUnavailable, match=r"no whole answer within 0\.1 s"):
        generate(EndpointModel(slow.url, "tiny", options=options), step())
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        away = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        with pytest.raises(EndpointUnavailable, match="ConnectError") as caught:
            generate(EndpointModel(away, "tiny", options=options), step())
    assert caught.value.tries == 2


def test_cancelling_gives_control_back_at_once(serve: Serve) -> None:
    server = serve(Raw(200, b"", delay=2))

    async def main() -> float:
        session = model(server).session()
        begun = time.perf_counter()
        with anyio.move_on_after(0.1):
            await session.generate([], prefix=None, sampling=Sampling(), max_tokens=5, stop_policy=StopPolicy.STRICT)
        await session.aclose()
        return time.perf_counter() - begun

    assert anyio.run(main) < 1


def test_a_closed_session_is_refused(serve: Serve) -> None:
    async def main() -> None:
        session = model(serve("x")).session()
        await session.aclose()
        with pytest.raises(SessionError):
            await session.generate([], prefix=None, sampling=Sampling(), max_tokens=5, stop_policy=StopPolicy.STRICT)

    anyio.run(main)


@pytest.mark.parametrize("spec", ["http://", "http:///v1#m", "http://host/v1", "https://host/v1#"])
def test_addresses_that_are_none(spec: str) -> None:
    with pytest.raises(ModelNotFoundError, match="http"):
        resolve_model(spec)


def test_the_command_line_names_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTKIT_API_KEY", KEY)
    found = resolve_model("http://127.0.0.1:9/v1/#org/name")
    assert isinstance(found, EndpointModel)
    assert (found.url, found.name) == ("http://127.0.0.1:9/v1/chat/completions", "org/name")
    assert KEY not in repr(found)


def test_an_agent_solves_an_episode_with_it(serve: Serve) -> None:
    server = serve(
        'Let me see.\n```\nlet d = search("aurora");\n```',
        "let n = count(aurora);",
        "d);",
        "let n = count(d);\nreturn n;",
        "return n;",
    )
    registry = builtin()
    expected = registry["count"].function(docs=registry["search"].function(query="aurora"))
    episode = Episode(name="e", prompt="How many?", output_type=INT, expected=expected)
    result = Agent(model(server, Continuation.MESSAGE)).run_sync(episode)
    assert result.grade is not None and result.grade.passed
    assert [turn.text for turn in result.turns] == ['let d = search("aurora");', "let n = count(d);", "return n;"]


def test_a_stuck_model_ends_the_run_with_its_result(serve: Serve) -> None:
    with pytest.raises(ModelFailed) as caught:
        Agent(model(serve("I'd rather not."), attempts=3)).run_sync("How many?")
    assert isinstance(caught.value.__cause__, EndpointStuck)
    assert caught.value.result.turns == ()


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_random_completions_never_give_an_ill_typed_text(seed: int) -> None:
    """A server that writes at random, some of it right: the text is SATISFIED, or an error says why not."""
    choice = random.Random(seed)
    pieces: Sequence[str] = [
        "let n = ",
        "count(",
        "d",
        ");",
        "return ",
        "3",
        ";",
        '"x"',
        "```\n",
        " ",
        "é",
        "d.x",
        "count(d);",
    ]

    def answer(request: Request) -> Raw:
        text = "".join(choice.choices(pieces, k=choice.randrange(1, 6)))
        return said(text, choice.choice(["stop", "length"]), completion_tokens=choice.randrange(1, 9))

    server = Server(answer)
    try:
        generation, samples = generate(model(server, choice.choice(list(Continuation))), step())
    except EndpointStuck as error:
        assert step().feed(error.text.encode()).verdict is not Verdict.LOST
    else:
        assert generation.prefix is not None and generation.prefix.text == generation.text.encode()
        ended = generation.finish is not FinishReason.LENGTH
        assert generation.prefix.verdict is (Verdict.SATISFIED if ended else generation.prefix.verdict)
        assert b"".join(record.text for record in generation.tokens).decode() == generation.text
        assert len(samples) == len(server.requests)
    finally:
        server.close()
