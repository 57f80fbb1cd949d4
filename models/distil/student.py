"""The student: some of the teacher's layers, each with a subset of its feed-forward units."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from models.data.corpora import Turn
from models.model.batches import TokenisedTurn, encoder_chunks
from models.model.encoder import random_backbone
from models.model.multitask import MultitaskModel


def from_teacher(
    teacher: MultitaskModel, layers: list[int], units: int, sample: list[list[int]]
) -> MultitaskModel:
    """Initialise a smaller model from the teacher's weights.

    Embeddings, context head and rationale layers are copied. Each kept layer (counted from 0)
    retains the `units` feed-forward units that contribute most to its output on the token ids of
    the sample.
    """
    config = copy.deepcopy(teacher.config)
    config.num_hidden_layers, config.intermediate_size = len(layers), units
    student = MultitaskModel(config, random_backbone(config))
    own = student.state_dict()
    kept = {
        name: value
        for name, value in teacher.state_dict().items()
        if not name.startswith("encoder.backbone.encoder.layer.")
    }
    student.load_state_dict(own | kept)
    weight = unit_weights(teacher, sample)
    for new, old in zip(student.encoder.layers, layers, strict=True):
        _narrow(teacher.encoder.layers[old], new, weight[old].topk(units).indices.sort().values)
    student.encoder.freeze_embeddings()
    return student


@torch.no_grad()
def _narrow(source: nn.Module, target: nn.Module, units: Tensor) -> None:
    state = dict(source.state_dict())
    for name in ("intermediate.dense.weight", "intermediate.dense.bias"):
        state[name] = state[name][units]
    state["output.dense.weight"] = state["output.dense.weight"][:, units]
    target.load_state_dict(state)


@torch.inference_mode()
def unit_weights(model: MultitaskModel, sample: list[list[int]]) -> Tensor:
    """Contribution of each feed-forward unit to its layer's output, [layers, units].

    This is its mean absolute activation times the norm of its outgoing weights.
    """
    model.eval()
    layers = model.encoder.layers
    total = torch.zeros(len(layers), model.config.intermediate_size)
    mask = torch.empty(0)

    def count(number: int, activation: Tensor) -> None:
        total[number] += (activation.float().abs() * mask.unsqueeze(-1)).sum((0, 1))

    handles = [
        layer.intermediate.register_forward_hook(
            lambda _module, _inputs, output, number=number: count(number, output)
        )
        for number, layer in enumerate(layers)
    ]
    for chunk in encoder_chunks([TokenisedTurn(Turn(0, ""), ids) for ids in sample], 1024):
        mask = chunk.attention_mask
        model.encoder(chunk.input_ids, mask)
    for handle in handles:
        handle.remove()
    outgoing = torch.stack([layer.output.dense.weight.norm(dim=0) for layer in layers])
    return total * outgoing


def flops_a_token(model: MultitaskModel) -> int:
    """Floating-point operations per token in the encoder's weight matrix products."""
    per_turn = model.encoder.turn_projection
    return sum(
        2 * module.weight.numel()
        for module in model.encoder.modules()
        if isinstance(module, nn.Linear) and module is not per_turn
    )
