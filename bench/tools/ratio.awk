# SPDX-License-Identifier: MIT OR 0BSD
# Statistics of scripts that run programs in turn: in front of an awk program of their own, which
# fills x[1] to x[n] with one figure of each round.

function sort_x(n,    i, j, v) {
    for (i = 2; i <= n; i++) {
        v = x[i]
        for (j = i - 1; j > 0 && x[j] > v; j--) x[j + 1] = x[j]
        x[j + 1] = v
    }
}

# Sorts x.
function median_x(n) {
    sort_x(n)
    return n % 2 ? x[(n + 1) / 2] : (x[n / 2] + x[n / 2 + 1]) / 2
}

# Of n figures in order: the median of what they are samples of lies between the one of this rank
# and that of the same rank from the end, at 95 % or more. 0: they are too few.
function rank_95(n,    k, p, below) {
    p = 2 ^ -n # of a binomial distribution
    for (k = 0; below + p <= 0.025; k++) {
        below += p
        p = p * (n - k) / (k + 1)
    }
    return k
}

# The ends of that interval, of a sorted x; empty if there is none.
function low_x(n,    k) { k = rank_95(n); return k ? x[k] : "" }
function high_x(n,    k) { k = rank_95(n); return k ? x[n + 1 - k] : "" }

function quotient(a, b) { return b > 0 ? a / b : 0 }
