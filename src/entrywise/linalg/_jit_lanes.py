"""Several numbers at once, for compiled loops that are too short for the compiler to find this by itself.

LLVM vectorizes loops, not straight lines (numba leaves that out), and a sum of seven products, or the largest of forty
numbers, is over before it pays. Here its vectors are values of compiled functions: four numbers in double precision, or
eight whole ones of 32 bits. They add in one order on every machine, whatever its registers hold, and nothing is fused.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
from __future__ import annotations

import operator

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.extending import intrinsic, models, overload, register_model

LINE = 8  # numbers in double precision that the processor's cache holds side by side
PLACE, WORD = ir.IntType(32), ir.IntType(64)


class Lanes(types.Type):
    """Some numbers of one kind, side by side."""

    def __init__(self, dtype, count):
        self.dtype, self.count = dtype, count
        super().__init__(f"{count} x {dtype}")


FOUR, EIGHT = Lanes(types.float64, 4), Lanes(types.int32, 8)
OF = {types.float64: FOUR, types.int32: EIGHT}


@register_model(Lanes)
class _Model(models.PrimitiveModel):
    def __init__(self, manager, lanes):
        number = manager.lookup(lanes.dtype).get_value_type()
        super().__init__(manager, lanes, ir.VectorType(number, lanes.count))


def _lanes_of(array):
    """Return the lanes that an array is read and written in."""
    if array.layout != "C" or array.dtype not in OF:
        raise TypingError(f"lanes want an array in order (C) of {list(OF)}, got {array}")
    return OF[array.dtype]


def _at(context, builder, signature, args, lanes):
    """Return where args[1] numbers of the array args[0] lie before, as a place of some numbers."""
    data = cgutils.create_struct_proxy(signature.args[0])(context, builder, args[0]).data
    vector = context.get_value_type(lanes)
    return builder.bitcast(builder.gep(data, [args[1]]), vector.as_pointer())


def _turned(builder, x, by):
    """Return the lanes moved by so many places, the first ones behind the last."""
    places = [(k + by) % x.type.count for k in range(x.type.count)]
    return builder.shuffle_vector(x, x, ir.Constant(ir.VectorType(PLACE, x.type.count), places))


def _all(builder, number, vector):
    """Return a number in all lanes."""
    nothing = ir.Constant(vector, ir.Undefined)
    first = builder.insert_element(nothing, number, ir.Constant(PLACE, 0))
    places = ir.Constant(ir.VectorType(PLACE, vector.count), [0] * vector.count)
    return builder.shuffle_vector(first, nothing, places)


@intrinsic
def load(typing, array, at):
    """Return the numbers from place `at` on of an array in order (C), counted through all of its rows."""
    lanes = _lanes_of(array)

    def code(context, builder, signature, args):
        size = lanes.dtype.bitwidth // 8
        return builder.load(_at(context, builder, signature, args, lanes), align=size)

    return lanes(array, types.intp), code


@intrinsic
def repeated(typing, array, at):
    """Return the number at place `at` of an array in order (C) in all lanes."""
    lanes = _lanes_of(array)

    def code(context, builder, signature, args):
        data = cgutils.create_struct_proxy(signature.args[0])(context, builder, args[0]).data
        number = builder.load(builder.gep(data, [args[1]]))
        return _all(builder, number, context.get_value_type(lanes))

    return lanes(array, types.intp), code


@intrinsic
def store(typing, array, at, x):
    """Write lanes to an array in order (C), from place `at` on."""
    lanes = _lanes_of(array)

    def code(context, builder, signature, args):
        size = lanes.dtype.bitwidth // 8
        builder.store(args[2], _at(context, builder, signature, args, lanes), align=size)
        return context.get_dummy_value()

    return types.void(array, types.intp, lanes), code


@intrinsic
def prefetch(typing, array, at):
    """Begin to bring into the cache what lies about place `at` of an array in order (C)."""

    def code(context, builder, signature, args):
        data = cgutils.create_struct_proxy(signature.args[0])(context, builder, args[0]).data
        place = builder.bitcast(builder.gep(data, [args[1]]), ir.IntType(8).as_pointer())
        form = ir.FunctionType(ir.VoidType(), [place.type, PLACE, PLACE, PLACE])
        call = builder.module.declare_intrinsic("llvm.prefetch", (place.type,), form)
        read, near, data_cache = (ir.Constant(PLACE, x) for x in (0, 3, 1))
        builder.call(call, [place, read, near, data_cache])
        return context.get_dummy_value()

    return types.void(array, types.intp), code


@intrinsic
def every(typing, number):
    """Return a number in double precision in all lanes."""

    def code(context, builder, signature, args):
        return _all(builder, args[0], context.get_value_type(FOUR))

    return FOUR(types.float64), code


def _arithmetic(operation, name):
    """Let lanes in double precision be added, subtracted or multiplied."""

    @intrinsic
    def both(typing, x, y):
        def code(context, builder, signature, args):
            return getattr(builder, name)(*args)

        return FOUR(FOUR, FOUR), code

    @overload(operation)
    def lanes(x, y):
        if x == FOUR and y == FOUR:
            return lambda x, y: both(x, y)
        return None


_arithmetic(operator.add, "fadd")
_arithmetic(operator.iadd, "fadd")
_arithmetic(operator.sub, "fsub")
_arithmetic(operator.mul, "fmul")


@intrinsic
def total(typing, x):
    """Return the sum of four numbers: the even ones, the odd ones, and both."""

    def code(context, builder, signature, args):
        (x,) = args
        for by in (2, 1):
            x = builder.fadd(x, _turned(builder, x, by))
        return builder.extract_element(x, ir.Constant(PLACE, 0))

    return types.float64(FOUR), code


@intrinsic
def larger(typing, x, y):
    """Return the larger one of two whole numbers, in each lane."""

    def code(context, builder, signature, args):
        return _larger(builder, *args)

    return EIGHT(EIGHT, EIGHT), code


def _larger(builder, x, y):
    return builder.select(builder.icmp_signed(">", x, y), x, y)


@intrinsic
def largest(typing, x):
    """Return the largest of eight whole numbers."""

    def code(context, builder, signature, args):
        (x,) = args
        for by in (4, 2, 1):
            x = _larger(builder, x, _turned(builder, x, by))
        return builder.extract_element(x, ir.Constant(PLACE, 0))

    return types.int32(EIGHT), code


def _same(builder, x, number):
    """Tell which lanes hold a number."""
    return builder.icmp_signed("==", x, _all(builder, number, x.type))


def _bits(builder, same):
    """Return eight truths as the lowest bits of a word."""
    return builder.zext(builder.bitcast(same, ir.IntType(8)), WORD)


@intrinsic
def bit_count(typing, word):
    """Return how many ones a word of 64 bits has."""

    def code(context, builder, signature, args):
        return builder.ctpop(args[0])

    return types.intp(types.uint64), code


@intrinsic
def lowest_bit(typing, word):
    """Return the place of the lowest one of a word of 64 bits, 64 where it is 0."""

    def code(context, builder, signature, args):
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.intp(types.uint64), code


@intrinsic
def place_of(typing, x, number):
    """Return the first of eight places that holds a whole number, 8 where none does."""

    def code(context, builder, signature, args):
        bits = _bits(builder, _same(builder, *args))
        ended = builder.or_(bits, ir.Constant(WORD, 1 << 8))
        return builder.cttz(ended, ir.Constant(ir.IntType(1), 1))

    return types.intp(EIGHT, types.int32), code


@intrinsic
def count_of(typing, x, number):
    """Return how many of eight places hold a whole number."""

    def code(context, builder, signature, args):
        return builder.ctpop(_bits(builder, _same(builder, *args)))

    return types.intp(EIGHT, types.int32), code


@intrinsic
def without(typing, x, number):
    """Return eight whole numbers with zeros where they are `number`."""

    def code(context, builder, signature, args):
        nothing = ir.Constant(args[0].type, None)
        return builder.select(_same(builder, *args), nothing, args[0])

    return EIGHT(EIGHT, types.int32), code
