"""Compiled greedy buying: the rows of a turn one after the other, the covariances of a row updated after each cell.

Symmetric q x q matrices come packed as their upper triangles. A block of rows comes with what all of its cells promise,
in single precision. Of each row the cells that reach the level of the turn are taken from the best on, each if it still
reaches the level after those before it, now in double precision. Columns learn after the turn, each once (one purchase
after the other would fetch a column's matrices anew for every cell), and give few cells to a turn.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
from __future__ import annotations

import numpy as np

from entrywise.linalg._jit import njit
from entrywise.linalg._jit_lanes import (
    LINE,
    count_of,
    every,
    larger,
    largest,
    load,
    place_of,
    prefetch,
    repeated,
    store,
    total,
    without,
)
from entrywise.linalg.small import MISSES, ROUGH

LINES = 64  # that are turned at once: they stay in the processor's cache
# of every byte its bits as ones and zeros in single precision, written as whole numbers
ONES = (
    np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(np.float32).view(np.int32)
)


@njit(cache=True, nogil=True)
def line_sums(index, other, table, size):
    """Return the sum of table[other] over the observations of each line, shape (size, p)."""
    p = table.shape[1]
    found, whole = np.zeros((size, p)), p - p % 4
    for t in range(len(index)):
        i, j = index[t], other[t]
        for s in range(0, whole, 4):
            store(found, i * p + s, load(found, i * p + s) + load(table, j * p + s))
        for s in range(whole, p):
            found[i, s] += table[j, s]
    return found


@njit(cache=True, nogil=True)
def sum_of_products(left, right, pointer, cells, n):
    """Return the sum of the products of row and column features, (m, 2p) and (n, 2p), over some cells.

    cells : coded as i n + j, in order, those of row i from pointer[i] on.
    """
    p, found = right.shape[1], 0.0
    sums, whole = np.empty(p), p - p % 4
    for i in range(len(left)):
        t, stop = pointer[i], pointer[i + 1]
        for s in range(p):
            sums[s] = 0.0
        while t < stop:
            j = cells[t] - i * n
            if t + 4 <= stop:  # four at a time: sums are fetched and written less often
                k, a, b = cells[t + 1] - i * n, cells[t + 2] - i * n, cells[t + 3] - i * n
                for s in range(0, whole, 4):
                    first = load(right, j * p + s) + load(right, k * p + s)
                    second = load(right, a * p + s) + load(right, b * p + s)
                    store(sums, s, load(sums, s) + (first + second))
                for s in range(whole, p):
                    sums[s] += right[j, s] + right[k, s] + right[a, s] + right[b, s]
                t += 4
            else:
                for s in range(p):
                    sums[s] += right[j, s]
                t += 1
        for s in range(p):
            found += left[i, s] * sums[s]
    return found


@njit(cache=True, nogil=True)
def products_at(left, right, i, j):
    """Return the products of lines i of `left` with lines j of `right`, shape (t,)."""
    p, found = left.shape[1], np.empty(len(i))
    whole = p - p % 4
    for t in range(len(i)):
        a, b, sums = i[t] * p, j[t] * p, every(0.0)
        for s in range(0, whole, 4):
            sums += load(left, a + s) * load(right, b + s)
        found[t] = total(sums)
        for s in range(whole, p):
            found[t] += left[i[t], s] * right[j[t], s]
    return found


@njit(cache=True, nogil=True)
def row_factors(rows, squares, inside, C, P, by, own_by, shared_by):
    """Return what the cells of some rows are scored by, in single precision: (r, 2p) for gains and (r, 2) for variances.

    squares : (m, p), outer squares u u' of every row; inside : see :func:`_add_inside`; C, P : (m, p), packed, covariances
    and C M C. The halves of a gain, P and u u', come times `by`, (2p,); those of a variance as their products with `own_by`
    and `shared_by`, (p,) each.
    """
    p = C.shape[1]
    gain, variance = np.empty((len(rows), 2 * p), np.float32), np.empty((len(rows), 2), np.float32)
    shared = np.empty((1, p))
    for r in range(len(rows)):
        i = rows[r]
        for s in range(p):
            gain[r, s] = P[i, s] * by[s]
        for s in range(p):
            gain[r, p + s] = squares[i, s] * by[p + s]
        _add_inside(squares, inside, C, i, shared[0])
        variance[r, 0] = _product(C, i, own_by)
        variance[r, 1] = _product(shared, 0, shared_by)
    return gain, variance


@njit(cache=True, nogil=True, forceinline=True)
def _add_inside(squares, inside, C, i, found):
    """Set `found`, (p,), to what a column's packed covariance is multiplied by for its part of a variance in row i.

    inside : (p,), how often the trace of a product of two packed matrices counts each place, the bias left out.
    """
    for s in range(len(found)):
        found[s] = squares[i, s] + inside[s] * C[i, s]


@njit(cache=True, nogil=True, forceinline=True)
def _product(left, i, right):
    """Return the product of line i with a vector."""
    p, sums = left.shape[1], every(0.0)
    whole = p - p % 4
    for s in range(0, whole, 4):
        sums += load(left, i * p + s) * load(right, s)
    found = total(sums)
    for s in range(whole, p):
        found += left[i, s] * right[s]
    return found


@njit(cache=True, nogil=True)
def turned(X, by, found):
    """Set the rows of `found`, in single precision, to the columns of X times `by`.

    Rows one after the other in memory: a product of few rows with it takes two thirds of the time.
    """
    for start in range(0, len(X), LINES):
        for s in range(X.shape[1]):
            for j in range(start, min(start + LINES, len(X))):
                found[s, j] = X[j, s] * by[s]


@njit(cache=True, nogil=True)
def _rooms(p, X):
    """Return the rooms that :func:`_next_halves` works in, for packed matrices of p numbers."""
    q = int(np.sqrt(2.0 * p))  # p = q (q + 1) / 2
    return np.zeros((2, q, X.shape[1])), np.zeros((2, 2, X.shape[1]))


@njit(cache=True, nogil=True, forceinline=True)
def _unpack(packed, i, full, which):
    """Set full[which], (q, width), to the symmetric matrix that line i of `packed` begins with."""
    q, s = np.uint64(full.shape[1]), np.uint64(0)  # unsigned: no place counts from the end
    for a in range(q):
        for b in range(a, q):
            full[which, a, b] = full[which, b, a] = packed[i, s]
            s += np.uint64(1)


@njit(cache=True, nogil=True)
def sandwich(C, M):
    """Return C M C of packed matrices, packed."""
    q = int(np.sqrt(2.0 * C.shape[1]))  # p = q (q + 1) / 2
    width = q + -q % 4
    full, half, found = np.zeros((2, q, width)), np.zeros((1, q, width)), np.empty_like(C)
    for i in range(len(C)):
        _unpack(C, i, full, 0)
        _unpack(M, i, full, 1)
        for a in range(q):
            for b in range(0, width, 4):
                sums = every(0.0)
                for c in range(q):
                    sums += repeated(full, a * width + c) * load(full, (q + c) * width + b)
                store(half, a * width + b, sums)
        for a in range(q):
            for b in range(0, width, 4):
                sums = every(0.0)
                for c in range(q):
                    sums += repeated(half, a * width + c) * load(full, c * width + b)
                store(full, (q + a) * width + b, sums)
        _pack(full, 1, found, i)
    return found


@njit(cache=True, nogil=True, forceinline=True)
def _pack(full, which, packed, i):
    """Write the upper triangle of full[which] into line i of `packed`."""
    q, s = np.uint64(full.shape[1]), np.uint64(0)
    for a in range(q):
        for b in range(a, q):
            packed[i, s] = full[which, a, b]
            s += np.uint64(1)


@njit(cache=True, nogil=True, forceinline=True)
def _next_halves(matrices, two, now, square, inverse, X, k):
    """Let a line learn of its last purchase; return its halves of the gain and the variance where it crosses line k.

    matrices : (2, q, width), C and P = C M C. ``C' = C - x x' / d`` and ``P' = P - (x w' + w x') / d + c x x'``, x and w
    in two[now], `inverse` is 1 / d, `square` c, both 0 where nothing is to be learned; v is X[k]. two[1 - now] gets C' v
    and P' v, sums of rows: the matrices are symmetric. In one go: a matrix that was just written would have to be read
    again. (Places in one array, since every exchange of two arrays would count their owners.)
    """
    q, width = matrices.shape[1:]
    here, there = 2 * now * width, 2 * (1 - now) * width
    gain = variance = every(0.0)
    for b in range(0, width, 8):
        first0 = first1 = second0 = second1 = every(0.0)
        x0, x1 = load(two, here + b), load(two, here + b + 4)
        w0, w1 = load(two, here + width + b), load(two, here + width + b + 4)
        for a in range(q):
            at, v = a * width + b, repeated(X, k * width + a)
            share = every(inverse * two[now, 0, a])
            both = every(square * two[now, 0, a] - inverse * two[now, 1, a])
            c0 = load(matrices, at) - share * x0
            c1 = load(matrices, at + 4) - share * x1
            e0 = load(matrices, q * width + at) + (both * x0 - share * w0)
            e1 = load(matrices, q * width + at + 4) + (both * x1 - share * w1)
            store(matrices, at, c0)
            store(matrices, at + 4, c1)
            store(matrices, q * width + at, e0)
            store(matrices, q * width + at + 4, e1)
            first0 += c0 * v
            first1 += c1 * v
            second0 += e0 * v
            second1 += e1 * v
        store(two, there + b, first0)
        store(two, there + b + 4, first1)
        store(two, there + width + b, second0)
        store(two, there + width + b + 4, second1)
        variance += first0 * load(X, k * width + b)
        variance += first1 * load(X, k * width + b + 4)
        gain += second0 * load(X, k * width + b)
        gain += second1 * load(X, k * width + b + 4)
    return total(gain), total(variance)


@njit(cache=True, nogil=True, forceinline=True)
def _column_halves(form, Pv, Cv, j):
    """Return the column's halves of the gain and the variance, and of the latter what is its own, not shared."""
    p = form.shape[1]
    whole = p - p % 4
    gains = variances = owns = every(0.0)
    for s in range(0, whole, 4):
        c, square = load(Cv, j * p + s), load(form, s)
        gains += square * load(Pv, j * p + s)
        owns += square * c
        variances += load(form, p + s) * c
    gain, variance, own = total(gains), total(variances), total(owns)
    for s in range(whole, p):
        gain += form[0, s] * Pv[j, s]
        own += form[0, s] * Cv[j, s]
        variance += form[1, s] * Cv[j, s]
    return gain, variance, own


@njit(cache=True, nogil=True)
def _doubled(X):
    """Return a matrix with room for twice as many columns, and one more."""
    found = np.empty((X.shape[0], 2 * X.shape[1] + 1), X.dtype)
    found[:, : X.shape[1]] = X
    return found


@njit(cache=True, nogil=True, forceinline=True)
def _ones(bits, i, free):
    """Set `free` to the bits of row i, as ones and zeros in single precision; both in eights."""
    for k in range(bits.shape[1]):
        store(free, 8 * k, load(ONES, 8 * np.int64(bits[i, k])))


@njit(cache=True, nogil=True)
def _bits_of(number, single):
    """Return the bits of a number in single precision; `single` is room for one."""
    single[0] = number
    return single.view(np.int32)[0]


@njit(cache=True, nogil=True)
def _float_of(bits, single):
    """Return the number in single precision that has these bits."""
    single.view(np.int32)[0] = bits
    return single[0]


@njit(cache=True, nogil=True, forceinline=True)
def _top(bits, low, high):
    """Return the largest of bits[low:high], eights of them."""
    found = load(bits, low)
    for k in range(low + 8, high, 8):
        found = larger(found, load(bits, k))
    return largest(found)


@njit(cache=True, nogil=True, forceinline=True)
def _take(bits, low, high, top):
    """Return the first place of bits[low:high], eights of them, that holds their largest, and the largest of the others.

    In one go, whatever is found: the processor waits where it reads what it has just written, and where a loop ends early.
    """
    place, count, others = low, 0, without(load(bits, low), top)
    for k in range(high - 8, low - 1, -8):
        x = load(bits, k)
        at = place_of(x, top)
        place = k + at if at < 8 else place
        count += count_of(x, top)
        others = larger(others, without(x, top))
    return place, top if count > 1 else largest(others)


@njit(cache=True, nogil=True, error_model="numpy")  # a division that may raise is not vectorized
def buy_rows(
    rows, gain, variance, unit, bits, price, noise, span, squares, inside, V, Cu, Pu, Cv, Pv,
    level, money, most, quota, known, deep, by_sum, best, bought, count,
):  # fmt: skip
    """Buy in a block of rows what reaches `level`; return what was bought, how many cells, and the money left.

    gain : (r, n), in single precision, gain times (noise + variance) of all cells of the block; variance : (r, 2) and
    (2, n), whose product is about their variance; both over what `unit` says, two numbers. bits : (m, n / 8), packed, one
    a cell that is open, changed in place. price : broadcasts to (r, n), as does noise, that of an answer;
    span : that of yes/no answers, 0 where all cells count alike. squares : (m, p), outer squares u u' of every row;
    inside : (p,), see :func:`_add_inside`. V : (n, width), designs, last coordinate one, with zeros behind them that fill
    eights.
    Packed: Cu, Pu, covariances of all rows and C M C, changed in place (with `by_sum` M stays); Cv, Pv, covariances of
    the columns and C N C.
    known : (m,), cells that rows know, those bought are added. deep : of a row the best are looked at,
    ``deep[0] + deep[1] t (r / level - 1)`` where it knows t cells and the best promises r, and none after
    MISSES that fell below the level one after the other. The next one is the best of the bests of parts of the row, sqrt(n)
    cells each.
    quota : (n,), cells that a column may still give; -1 after it has refused one. most : cells at most, those included
    that were bought before.
    best : (m,), gets what a row may gain for its price at most, of the rows of the block.
    bought : room for (2, b) rows and columns, and (4, b) variances, losses, rates and prices, of which `count` were bought
    before; returned larger where it is too small. The variance is that of what a purchase tells its column, and its loss
    what N loses times u u'.
    """
    n, p = len(V), Cu.shape[1]
    lines, told = bought  # each look at a tuple would count their owners
    of_rows, of_cols = variance
    of_row, of_col = of_cols[0], of_cols[1]  # what each part of a row is multiplied by
    row, two = _rooms(p, V)
    form, now = np.empty((2, p)), 0
    part = 8 * (int(np.sqrt(n)) // 8 + 1)
    parts_of = -(-n // part)
    # above 0 the bits of a float are in order, and a largest whole number is found at once
    rates = np.zeros(parts_of * part, np.float32)
    free = np.empty(8 * bits.shape[1], np.float32)
    free_bits = free.view(np.int32)
    order, tops = rates.view(np.int32), np.zeros(-(-parts_of // 8) * 8, np.int32)
    single = np.empty(1, np.float32)
    tall, wide = int(price.shape[0] > 1), int(price.shape[1] > 1)
    noise_tall, noise_wide = int(noise.shape[0] > 1), int(noise.shape[1] > 1)
    floor = max(_bits_of(level / ROUGH, single), np.int32(1))  # what is 0 is never looked at
    for r in range(len(rows)):
        i, along_row, along_col = rows[r], of_rows[r, 0], of_rows[r, 1]
        # long before they are read: the processor waits for numbers that were written one by one
        _unpack(Cu, i, row, 0)
        _unpack(Pu, i, row, 1)
        for s in range(p):
            form[0, s] = squares[i, s]
        _add_inside(squares, inside, Cu, i, form[1])
        _ones(bits, i, free_bits)
        if wide == 0 and noise_wide == 0:
            each = np.float32(unit[0] / unit[1] / price[r * tall, 0])
            each = each if price[r * tall, 0] <= money else np.float32(0.0)
            alike = np.float32(noise[r * noise_tall, 0] / unit[1])
            for j in range(n):
                rough = along_row * of_row[j] + along_col * of_col[j] + alike
                rates[j] = gain[r, j] / rough * (each * free[j])
        else:
            for j in range(n):
                spread = unit[1] * (along_row * of_row[j] + along_col * of_col[j])
                spread += noise[r * noise_tall, j * noise_wide]
                cost = price[r * tall, j * wide]
                rates[j] = unit[0] * gain[r, j] / (spread * cost)
                if cost > money or free[j] == 0.0:
                    rates[j] = 0.0
        for g in range(parts_of):
            tops[g] = _top(order, g * part, (g + 1) * part)
        top = _top(tops, 0, len(tops))
        promise = _float_of(top, single)
        best[i] = ROUGH * promise
        if top < floor or count == most:
            continue
        rate, promised, highest, before, looked, missed = 1.0, 1.0, 0.0, count, 0, 0
        square = inverse = 0.0
        enough = deep[0] + deep[1] * known[i] * (promise / level - 1.0)
        while count + min(enough + 1.0, n) > lines.shape[1]:
            lines, told = _doubled(lines), _doubled(told)
        while top >= floor and looked < enough and missed < MISSES:
            g, elsewhere = _take(tops, 0, len(tops), top)
            j, tops[g] = _take(order, g * part, (g + 1) * part, top)
            top = max(elsewhere, tops[g])
            stale = rates[j]
            prefetch(V, j * V.shape[1])  # all needed when the next one has been found
            for s in range(0, p, LINE):
                prefetch(Pv, j * p + s)
                prefetch(Cv, j * p + s)
            order[j], looked = 0, looked + 1
            cost, about = price[r * tall, j * wide], noise[r * noise_tall, j * noise_wide]
            if count == most or cost > money or quota[j] <= 0:
                highest = max(highest, stale)
                if quota[j] == 0:
                    quota[j] = -1
                continue
            along, spread = _next_halves(row, two, now, square, inverse, V, j)
            square = inverse = 0.0
            more, across, own = _column_halves(form, Pv, Cv, j)
            along, spread = max(along, 0.0), max(spread, 0.0)
            d = about + spread + across
            precision = 1.0 / d
            rate, promised = (along + more) * precision / cost, stale
            if rate < level:
                highest = max(highest, rate)
                missed += 1
                continue
            missed = 0
            money -= cost * (1.0 - 1e-12)
            quota[j] -= 1
            bits[i, j >> 3] &= ~(np.uint8(128) >> np.uint8(j & 7))
            loss = 1.0 if span == 0.0 else (span / about) ** 2
            lines[0, count], lines[1, count] = i, j
            told[0, count], told[1, count] = d - own, loss
            told[2, count], told[3, count] = rate, cost
            count += 1
            square, inverse = along * precision**2, precision
            if not by_sum:
                square -= loss * (1.0 - spread * inverse) ** 2
            now = 1 - now
        best[i] = ROUGH * _float_of(top, single)
        known[i] += count - before
        if count > before:
            _next_halves(row, two, now, square, inverse, V, 0)
            _pack(row, 0, Cu, i)
            _pack(row, 1, Pu, i)
            best[i] *= min(rate / promised, 1.0)  # what was not looked at fell about as much
        best[i] = max(best[i], highest)
    return lines, told, count, money


@njit(cache=True, nogil=True, error_model="numpy")
def columns_learn(U, C, P, known, rows, cols, variance, lost):
    """Let columns learn of all purchases of a turn, one after the other: C and P = C N C, packed, change in place.

    U : (m, width), designs in eights. known : (n,), cells that columns know, those bought are added.
    rows, cols : (b,), cells in any order; variance, lost : (b,), what :func:`buy_rows` tells of them.
    """
    n, now = len(C), 0
    col, two = _rooms(C.shape[1], U)
    first = np.zeros(n + 1, np.int64)
    for j in cols:
        first[j + 1] += 1
    for j in range(n):
        first[j + 1] += first[j]
    place, row, told = first.copy(), np.empty(len(cols), np.int64), np.empty((len(cols), 2))
    for t in range(len(cols)):  # column by column: to read them here and there would take longer
        at = place[cols[t]]
        row[at], told[at, 0], told[at, 1] = rows[t], variance[t], lost[t]
        place[cols[t]] += 1
    for j in range(n):
        if first[j] == first[j + 1]:
            continue
        known[j] += first[j + 1] - first[j]
        _unpack(C, j, col, 0)
        _unpack(P, j, col, 1)
        square = inverse = 0.0
        for t in range(first[j], first[j + 1]):
            along, spread = _next_halves(col, two, now, square, inverse, U, row[t])
            inverse = 1.0 / (told[t, 0] + max(spread, 0.0))
            square = along * inverse**2 - told[t, 1] * (1.0 - spread * inverse) ** 2
            now = 1 - now
        _next_halves(col, two, now, square, inverse, U, 0)
        _pack(col, 0, C, j)
        _pack(col, 1, P, j)
