"""The ONNX adapter of the core's ``Scorer`` port."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from stream_app.contracts.events import SCORED_ROLES, Role
from stream_app.contracts.scores import MECHANISMS, SCALE, TOTAL, Expressed, Level, Span
from stream_app.core.measures.crisis import CRISIS
from stream_app.core.measures.empathy import EmpathyModel
from stream_app.core.measures.heads import Dimension, Head, HeadKind
from stream_app.core.measures.outcomes import OutcomeModel
from stream_app.core.measures.watch import DISTRESS
from stream_app.core.measures.window import ScoringRequest, parts_of
from stream_app.core.session.ports import Encoding, HeadScores
from stream_app.inference.bundles.bundle import Bundle
from stream_app.inference.bundles.calibration import Decisions, choose_labels, rounded
from stream_app.inference.devices.probe import TurnProbe
from stream_app.inference.devices.provider_choice import FIRST_DEVICE, CudaDevice, Provider
from stream_app.inference.devices.providers import Graph
from stream_app.inference.encoder import TokenOutput, TurnEncoder, encoder_graph
from stream_app.inference.head import ContextHead
from stream_app.inference.parts import Joined, in_parts, join_of, mean_of
from stream_app.inference.rationale import SentenceReader
from stream_app.inference.reader import TurnReader, packed_tokens, reader_graph
from stream_app.inference.tokenizer import TextTokenizer, Tokens, WholeText
from stream_app.plain_text.copies import spoken
from stream_app.plain_text.mapped import Mapped

Mask = Callable[[str], str]
"""Returns a text with personal details masked."""


class OnnxScorer:
    """Scores with a bundle; thread-safe.

    Probabilities and ``confidence`` are whole ten-thousandths, so that a score is the same where it
    is used live, published in short form and stored.

    ``threads`` of each session on a CPU; the encoder computes ``at_once`` batches at a time.
    ``shared``: the scorer whose encoder, tokeniser and reader it uses, for a head bundle
    (``inference.head_bundle``). Rationales then are those of that scorer's bundle. ``mask``: masks
    personal details in what the reader reads, because windows are stored with these tokens.
    ``device``: of sessions on CUDA.
    """

    def __init__(
        self,
        bundle: Bundle,
        provider: Provider = Provider.AUTO,
        threads: int = 1,
        *,
        at_once: int = 1,
        shared: "OnnxScorer | None" = None,
        mask: Mask | None = None,
        device: CudaDevice = FIRST_DEVICE,
    ) -> None:
        manifest = bundle.manifest
        self.bundle = bundle
        self.device = device
        if shared is not None:
            self.tokenizer: TextTokenizer = shared.tokenizer
            self.encoder: TurnEncoder = shared.encoder
        else:
            self.tokenizer = TextTokenizer(
                bundle.file(manifest.tokenizer.file), manifest.encoder.max_tokens
            )
            self.encoder = TurnEncoder(
                bundle.file(manifest.encoder.file),
                manifest.encoder,
                provider,
                threads,
                at_once,
                device,
            )
        extractors = [
            (head.name, head.rationale, head.roles)
            for head in (shared.bundle.manifest.heads if shared else manifest.heads)
            if head.rationale is not None
        ]
        self._rationale_heads = {
            role: [
                (name, rationale)
                for name, rationale, roles in extractors
                if role is None or role in roles
            ]
            for role in (None, *SCORED_ROLES)
        }
        self.head = ContextHead(
            bundle.file(manifest.head.file),
            Provider.CPU,  # small products: transfers would cost more than computing them
            threads,
            manifest.head.slots,
            manifest.encoder.hidden_size,
        )
        self.mask: Mask | None = shared.mask if shared is not None else mask
        self.reader: TurnReader | None = None
        if manifest.reader is not None and shared is not None:
            self.reader = shared.reader
        elif manifest.reader is not None:
            self.reader = TurnReader(
                bundle.file(manifest.reader.file),
                manifest.reader,
                provider,
                threads,
                manifest.files[manifest.reader.file],
                device,
            )
        self._read = frozenset(self.reader.names if self.reader is not None else ())
        self._heads = manifest.heads
        self._joins = {head.name: join_of(head) for head in manifest.heads}
        self._decisions = Decisions(manifest)
        columns = self._decisions.calibration.columns
        self._levels = [
            (place, columns[head.name], head.offsets)
            for place, head in enumerate(self._heads)
            if head.kind is HeadKind.LEVEL
        ]
        self._heads_of = {
            role: [
                (place, columns[head.name], head)
                for place, head in enumerate(self._heads)
                if role in head.roles
            ]
            for role in SCORED_ROLES
        }
        self._probes = {
            name: TurnProbe.read(bundle.file(probe.file), 2 * manifest.encoder.hidden_size)
            for name, probe in ((DISTRESS, manifest.distress), (CRISIS, manifest.crisis))
            if probe is not None
        }

    @property
    def provider(self) -> Provider:
        """CUDA if encoder and reader use it, otherwise the CPU."""
        every = set(self.providers.values())
        return every.pop() if len(every) == 1 else Provider.CPU

    @property
    def providers(self) -> dict[str, Provider]:
        """The provider of each graph that may run on accelerators, by name."""
        found = {"encoder": self.encoder.provider}
        if self.reader is not None:
            found["reader"] = self.reader.provider
        return found

    @property
    def bundle_id(self) -> str:
        """Name, version and profile of the bundle."""
        return self.bundle.manifest.bundle_id

    @property
    def window(self) -> tuple[int, int]:
        """Number of preceding and following turns in a window."""
        return self.bundle.manifest.window.before, self.bundle.manifest.window.after

    @property
    def heads(self) -> Sequence[Head]:
        """The bundle's heads."""
        return self._heads

    @property
    def empathy(self) -> EmpathyModel | None:
        """The bundle's references for the empathy index."""
        return self.bundle.manifest.empathy

    @property
    def outcomes(self) -> Mapping[str, OutcomeModel]:
        """The bundle's outcome models by name."""
        return self.bundle.manifest.outcomes

    def encode(self, texts: list[str], roles: list[Role] | None = None) -> list[Encoding]:
        """Encode each text once; see ``core.ports.Scorer``."""
        copies = [spoken(text) for text in texts]
        whole = self.tokenizer.whole([copy.text for copy in copies])
        read = self._read_tokens(copies, whole)
        outputs = iter(self.encoder.encode([part for each in whole for part in each.parts]))
        return [
            self._encoding(
                copy,
                [(part, next(outputs)) for part in text.parts],
                roles[index] if roles is not None else None,
                read[index],
            )
            for index, (copy, text) in enumerate(zip(copies, whole, strict=True))
        ]

    def _encoding(
        self,
        copy: Mapped,
        encoded: Sequence[tuple[Tokens, TokenOutput]],
        role: Role | None,
        read: bytes,
    ) -> Encoding:
        """The encoding of a text from those of its parts."""
        vectors = [output.vectors for _, output in encoded]
        found: dict[str, list[Span]] = {}
        for part, output in encoded:
            for name, marked in self._rationales(part, output, copy, role).items():
                found[name] = _with_later(found.get(name, []), marked)
        single = len(encoded) == 1
        return Encoding(
            vectors=(vectors[0] if single else mean_of(vectors)).tobytes(),
            rationales={name: copy.spans(spans) for name, spans in found.items()},
            truncated=encoded[0][0].truncated,
            tokens=read,
            parts=b"" if single else b"".join(each.tobytes() for each in vectors),
        )

    def _read_tokens(self, copies: list[Mapped], tokens: list[WholeText]) -> list[bytes]:
        """Return what windows keep for the reader: the tokens of each text, masked."""
        if self.reader is None:
            return [b""] * len(copies)
        if self.mask is not None:
            texts = [copy.text for copy in copies]
            masked = [copy.masked_as(self.mask(copy.original)) for copy in copies]
            again = iter(
                self.tokenizer.whole(
                    [new for new, old in zip(masked, texts, strict=True) if new != old]
                )
            )
            tokens = [
                next(again) if new != old else known
                for new, old, known in zip(masked, texts, tokens, strict=True)
            ]
        return [packed_tokens(each.words) for each in tokens]

    def _rationales(
        self, tokens: Tokens, output: TokenOutput, copy: Mapped, role: Role | None
    ) -> dict[str, list[Span]]:
        """The rationales in a part, as spans of the copy."""
        wanted = self._rationale_heads[role]
        if not wanted:
            return {}
        by_mechanism = output.rationale.T.tolist()
        peaks = [max(of_tokens) for of_tokens in by_mechanism]
        if not any(peaks[rationale.index] >= rationale.threshold for _, rationale in wanted):
            return {}  # most turns: no need to split sentences
        sentences = SentenceReader(tokens.offsets, copy.text)
        found = {
            name: sentences.spans(by_mechanism[rationale.index], rationale.threshold)
            for name, rationale in wanted
        }
        return {name: spans for name, spans in found.items() if spans}

    def score(self, requests: list[ScoringRequest]) -> list[HeadScores]:
        """Score encoded turns with their neighbours; see ``core.ports.Scorer``."""
        if not requests:
            return []
        logits, readings = self._logits(requests)
        probabilities = self._decisions.probabilities(logits)
        levels = {
            place: choose_labels(probabilities[:, columns], offsets).tolist()
            for place, columns, offsets in self._levels
        }
        shares = rounded(probabilities)
        tops = self._decisions.calibration.largest(shares).tolist()
        found = [
            self._scores(
                request, values, top, {place: of[row] for place, of in levels.items()}, reading
            )
            for row, (request, values, top, reading) in enumerate(
                zip(requests, shares.tolist(), tops, readings, strict=True)
            )
        ]
        self._add_probes(requests, found)
        return found

    def _logits(
        self, requests: list[ScoringRequest]
    ) -> tuple[dict[str, npt.NDArray[np.float32]], list[bytes]]:
        """Logits of all heads by name, and the turns' readings."""
        of_parts, counts = in_parts(requests)
        logits = Joined(counts).logits(self.head.logits(of_parts), self._joins)
        if self.reader is None:
            return logits, [b""] * len(requests)
        readings = self.reader.readings(requests)
        read, counts = self.reader.logits(readings)
        return logits | Joined(counts).logits(read, self._joins), readings

    def _add_probes(self, requests: list[ScoringRequest], found: list[HeadScores]) -> None:
        """Add the probes' probabilities to client turns.

        Probes are not heads and do not affect ``confidence``.
        """
        of_clients = [
            i
            for i, request in enumerate(requests)
            if request.turn.role is Role.CLIENT and Dimension.CLIENT not in request.restricted
        ]
        if not self._probes or not of_clients:
            return
        turns = [requests[i].turn for i in of_clients]
        of_turns = [parts_of(turn.vectors, turn.parts) for turn in turns]
        joined = Joined([len(each) for each in of_turns])
        raw = b"".join(part for each in of_turns for part in each)
        vectors = np.frombuffer(raw, np.float16).reshape(sum(joined.counts), -1)
        for name, probe in self._probes.items():
            yes = np.rint(joined.highest(probe.probabilities(vectors)) * SCALE)
            shares = (np.stack([SCALE - yes, yes], axis=-1) / SCALE).tolist()
            for i, (no, p) in zip(of_clients, shares, strict=True):
                found[i].client[name] = {"no": no, "yes": p}

    def _scores(
        self,
        request: ScoringRequest,
        probabilities: list[float],
        largest: list[float],
        levels: dict[int, int],
        reading: bytes,
    ) -> HeadScores:
        """The scores of one request.

        ``probabilities``: of all heads' labels, and ``largest`` of each head. ``levels``: the level
        heads' levels by place. ``reading``: of the turn, empty without one.
        """
        expressed = Expressed()
        perceived: dict[str, float] = {}
        client: dict[str, dict[str, float]] = {}
        tops: list[float] = []
        abstained: list[str] = []
        for place, columns, head in self._heads_of[request.turn.role]:
            if head.dimension in request.restricted or (not reading and head.name in self._read):
                continue
            values, top = probabilities[columns], largest[place]
            tops.append(top)
            if top < head.abstain_below:
                abstained.append(head.name)
            match head.dimension:
                case Dimension.EXPRESSED if head.kind is HeadKind.LEVEL:
                    level = levels[place]
                    shown = request.turn.rationales.get(head.name, []) if level else []
                    expressed[head.name] = Level(level, values, shown)
                case Dimension.EXPRESSED:
                    expressed[head.name] = dict(zip(head.labels, values, strict=True))
                case Dimension.PERCEIVED:
                    perceived[head.name] = values[-1]
                case Dimension.CLIENT | Dimension.OUTCOME:
                    client[head.name] = dict(zip(head.labels, values, strict=True))
        known = [found.level for name in MECHANISMS if (found := expressed.level(name))]
        if known:
            expressed[TOTAL] = sum(known)
        return HeadScores(
            expressed=expressed,
            perceived=perceived,
            client=client,
            confidence=round(sum(tops) / len(tops), 4) if tops else 0.0,
            abstained=abstained,
            readings=reading,
        )


def _with_later(spans: list[Span], later: list[Span]) -> list[Span]:
    """Spans of a part and of the next one, which overlaps it; both ascend."""
    found = list(spans)
    for start, end in later:
        if found and start <= found[-1][1]:
            found[-1] = (min(start, found[-1][0]), max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found


def graphs(bundle: Bundle) -> dict[str, Graph]:
    """The graphs that run on accelerators, by name."""
    manifest = bundle.manifest
    found = {"encoder": encoder_graph(bundle.file(manifest.encoder.file))}
    if manifest.reader is not None:
        found["reader"] = reader_graph(bundle.file(manifest.reader.file), manifest.reader)
    return found
