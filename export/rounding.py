"""8-bit weights, rounded to minimise a product's error on representative inputs (GPTQ)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

LARGEST = 127
LARGEST_NEIGHBOURS = 127.4
"""Bound on |w1| + |w2| before rounding: (127.4 + 1) * 255 < 2 ** 15."""
DAMPING = 0.01
"""Damping: added to the diagonal of the inputs' second moments, as a share of its mean."""
BLOCK = 64
"""Rows per block; errors are first propagated within it, because block products are fast."""

Doubles = npt.NDArray[np.float64]
Floats = npt.NDArray[np.float32]


def rounded(weight: Doubles, inputs: Floats) -> tuple[npt.NDArray[np.int8], Floats]:
    """Weights [inputs, outputs] as int8 and the scale [outputs] of each output.

    Rows are rounded one after the other; each row's rounding error is compensated in the remaining
    rows, in proportion to how correlated their inputs are (GPTQ, Frantar et al. 2023, algorithm 1).
    No two neighbouring rows (2i, 2i + 1) have |w1| + |w2| of more than 128, see `column_scales`.

    Args:
        weight: the float weights.
        inputs: representative inputs, [tokens, inputs].
    """
    scales = column_scales(weight)
    upper = _inverse_factor(inputs)
    left = weight.astype(np.float64)
    values = np.zeros(left.shape, np.int8)
    for start in range(0, len(left), BLOCK):
        end = min(start + BLOCK, len(left))
        errors = np.empty((end - start, left.shape[1]))
        for row in range(start, end):
            room = LARGEST
            if row % 2:
                room = np.minimum(LARGEST, LARGEST + 1 - np.abs(values[row - 1].astype(int)))
            chosen = np.clip(np.rint(left[row] / scales), -room, room)
            values[row] = chosen
            error = (left[row] - chosen * scales) / upper[row, row]
            left[row + 1 : end] -= np.outer(upper[row, row + 1 : end], error)
            errors[row - start] = error
        left[end:] -= upper[start:end, end:].T @ errors
    return values, scales.astype(np.float32)


def column_scales(weight: Doubles) -> Doubles:
    """The step [outputs] of each output's weights.

    Processors without VNNI add two products of neighbouring rows in saturating 16 bits, so steps
    are wide enough for the sum of two neighbours.
    """
    sizes = np.abs(weight)
    odd = np.zeros_like(sizes[0::2])
    odd[: len(sizes) // 2] = sizes[1::2]
    scales = np.maximum(
        sizes.max(axis=0) / LARGEST, (sizes[0::2] + odd).max(axis=0) / LARGEST_NEIGHBOURS
    )
    scales[scales == 0] = 1
    return np.asarray(scales, np.float64)


def _inverse_factor(inputs: Floats) -> Doubles:
    """The upper Cholesky factor of the inverse of the inputs' second moments."""
    moments = (inputs.T @ inputs).astype(np.float64)
    diagonal = np.diag_indices(len(moments))
    moments[diagonal] += DAMPING * moments[diagonal].mean() + 1e-9
    return np.asarray(np.linalg.cholesky(np.linalg.inv(moments)).T, np.float64)
