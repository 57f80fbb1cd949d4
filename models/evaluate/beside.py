"""Tables of a small bundle beside the one that it was distilled from."""

from __future__ import annotations

from typing import Any

from models.evaluate.tables import NONE, percent, table

Content = dict[str, Any]

PROTOCOL = """\
`{small}` was distilled from `{large}`. Both as they are shipped, on the conversations that neither
learned from ({split}); per cent, with the turns before and after the scored one. In every pair the
large bundle stands first. These labelled turns are few in some heads (n): a difference of a point
or two there is chance. Printed by `python -m models.distil compare`."""

AGREEMENT = """\
Equal labels and distance are over all held-out turns of the head's role, labelled or not; distance
is the mean total variation between the calibrated probabilities (0 the same, 100 nothing in
common). The outcome heads have no labels for single turns."""


def beside(content: Content) -> str:
    """Cost, heads, rationales and outcome risk of both."""
    large, small = content["bundles"]
    return "\n\n".join(
        [
            PROTOCOL.format(small=small, large=large, split=content["split"]),
            _cost(content),
            _labelled(content["heads"]),
            _rationales(content["heads"]),
            AGREEMENT,
            _agreement(content["heads"]),
            _risk(content["risk"]),
        ]
    )


def _cost(content: Content) -> str:
    cost = content["cost"]
    ratio = [
        f"1/{content['flops_a_token'][0] / content['flops_a_token'][1]:.1f}",
        f"× {cost['ratio']:.1f}",
    ]
    rows = [
        ["parameters (million)", *_numbers(content["parameters"], 1e6), ""],
        ["encoder, MFLOP a token", *_numbers(content["flops_a_token"], 1e6), ratio[0]],
        ["encoder.onnx, MB", *_numbers(content["encoder_bytes"], 1e6), ""],
        ["bundle, MB", *_numbers(content["bundle_bytes"], 1e6), ""],
        ["encoding, µs of CPU a turn", *_numbers(cost["encode_us"], 1, 0), f"{ratio[1]} as fast"],
    ]
    note = (
        f"Encoding is tokeniser, encoder and rationales of {cost['turns']} held-out turns "
        f"({cost['tokens_a_turn']:.0f} tokens on average) on one thread, {cost['rounds']} rounds "
        "of both in turn, medians."
    )
    return table(["", "large", "small", ""], rows) + "\n\n" + note


def _numbers(pair: list[float], unit: float, digits: int = 1) -> list[str]:
    return [f"{value / unit:.{digits}f}" for value in pair]


def _pair(pair: list[float]) -> list[str]:
    return [percent(pair[0]), percent(pair[1]), f"{100 * (pair[1] - pair[0]):+.1f}"]


def _labelled(heads: Content) -> str:
    rows = [
        [name, str(row["n"]), percent(row["majority"])]
        + [cell for key in ("accuracy", "macro_f1") for cell in _pair(row[key])]
        for name, row in heads.items()
        if "accuracy" in row
    ]
    shown = [row for row in heads.values() if "accuracy" in row]
    means = [
        [sum(row[key][place] for row in shown) / len(shown) for place in (0, 1)]
        for key in ("accuracy", "macro_f1")
    ]
    last = ["mean", "", "", *_pair(means[0]), *_pair(means[1])]
    header = ["head", "n", "majority", "accuracy", "small", "Δ", "macro-F1", "small", "Δ"]
    return table(header, [*rows, last])


def _rationales(heads: Content) -> str:
    rows = [
        [name, *_pair(row["token_f1"]), *_pair(row["iou_f1"])]
        for name, row in heads.items()
        if "token_f1" in row
    ]
    return table(["rationale", "token F1", "small", "Δ", "IOU-F1", "small", "Δ"], rows)


def _agreement(heads: Content) -> str:
    rows = [
        [name, str(row["turns"]), percent(row["equal_labels"]), percent(row["distance"])]
        for name, row in heads.items()
    ]
    return table(["head", "turns", "equal labels", "distance"], rows)


def _risk(risk: Content) -> str:
    first, second = (_interval(figure) for figure in risk["auroc"])
    return (
        f"Risk of `chat_failed` after the last turn of {risk['sessions']} held-out ESConv chats, "
        f"{risk['low']} of them failed: AUROC {first} with the large bundle, {second} with the "
        f"small one, difference {_interval(risk['difference'])}; correlation "
        f"{risk['pearson']:.2f}, mean distance {percent(risk['mean_distance'])} points. Both use "
        "the same outcome model, which was fitted with labels of these chats too (on scores of "
        "models that had not seen them): the difference counts, not the height."
    )


def _interval(figure: Content) -> str:
    value, low, high = figure["value"], figure["low"], figure["high"]
    if value is None:
        return NONE
    return f"{value:.3f} ({low:.3f} to {high:.3f})"
