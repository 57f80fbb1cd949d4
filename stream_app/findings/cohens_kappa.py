"""Cohen's kappa with its standard error, without the 110 MiB of a library in each web process.

Cohen 1968; the error is that of Fleiss, Cohen and Everitt 1969, equation 9. The tests hold both to
``statsmodels``.
"""

from collections.abc import Sequence
from math import sqrt


def cohens_kappa(counts: Sequence[Sequence[int]], *, ordered: bool) -> tuple[float, float]:
    """Kappa of a confusion matrix, and its standard error.

    Args:
        counts: at least two labels have been used by each side.
        ordered: weights are quadratic, else only equal labels agree.

    >>> cohens_kappa([[15, 5], [5, 15]], ordered=True)
    (0.5, 0.13693063937629152)
    """
    n = sum(map(sum, counts))
    labels = range(len(counts))
    shares = [[count / n for count in row] for row in counts]
    rows = [sum(row) for row in shares]
    columns = [sum(column) for column in zip(*shares, strict=True)]
    widest = (len(counts) - 1) ** 2
    weights = [
        [1 - (i - j) ** 2 / widest if ordered else float(i == j) for j in labels] for i in labels
    ]
    by_row = [sum(weights[i][j] * columns[j] for j in labels) for i in labels]
    by_column = [sum(weights[i][j] * rows[i] for i in labels) for j in labels]
    expected = sum(rows[i] * by_row[i] for i in labels)
    observed = sum(weights[i][j] * shares[i][j] for i in labels for j in labels)
    kappa = (observed - expected) / (1 - expected)
    spread = sum(
        shares[i][j] * (weights[i][j] - (by_row[i] + by_column[j]) * (1 - kappa)) ** 2
        for i in labels
        for j in labels
    )
    variance = (spread - (kappa - expected * (1 - kappa)) ** 2) / ((1 - expected) ** 2 * n)
    return kappa, sqrt(max(0.0, variance))
