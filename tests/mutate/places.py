"""Where a C++ source can be mutated, found in the syntax tree that clang's library makes of it.

A place is a range of bytes and what stands there instead. Ranges come from the tree, so they nest and never overlap by half.
Left out: what comes out of a macro, what is decided when compiling (types, template arguments, `constexpr` variables, case
labels), and what cannot change a result (logging, `reserve`).
"""
import bisect
import ctypes
import re
from dataclasses import dataclass

from clang import cindex
from clang.cindex import CursorKind as Kind
from clang.cindex import TypeKind


@dataclass(frozen=True)
class Place:
    start: int
    end: int
    change: str  # for people: "< -> <="
    text: bytes  # what stands here instead
    form: str  # "expression", "condition" or "statement"


COMPARED = {"<": ["<=", ">="], "<=": ["<", ">"], ">": [">=", "<="], ">=": [">", "<"], "==": ["!="], "!=": ["=="]}
COMPUTED = {"+": ["-"], "-": ["+"], "*": ["/"], "/": ["*"], "%": ["/"], "&": ["|"], "|": ["&"], "^": ["&"],
            "<<": [">>"], ">>": ["<<"]}
ASSIGNED = {"+=": ["-="], "-=": ["+="], "*=": ["/="], "/=": ["*="], "|=": ["&="], "&=": ["|="], "%=": ["/="],
            "<<=": [">>="], ">>=": ["<<="]}
COMMUTATIVE = {"min", "max", "smaller", "larger", "gcd", "lcm", "fmin", "fmax", "hypot", "swap", "memcmp", "equal", "midpoint",
               "result_type", "promote_types"}
NO_EFFECT = re.compile(rb"^(spdlog::|log::|TENON_|assert|static_cast<void>|\(void\))|(\.|->)(reserve|shrink_to_fit)\(")
LITERAL = re.compile(rb"^(0[xX][0-9a-fA-F']+|[0-9][0-9']*)[uUlLzZ]*$")
REAL = re.compile(rb"^[0-9][0-9'.]*([eE][-+]?[0-9]+)?[fFlL]?$")
FUNCTIONS = {Kind.FUNCTION_DECL, Kind.CXX_METHOD, Kind.CONSTRUCTOR, Kind.DESTRUCTOR, Kind.FUNCTION_TEMPLATE,
             Kind.CONVERSION_FUNCTION}
# Their parts are names and types.
CLOSED = {Kind.DECL_REF_EXPR, Kind.TYPE_REF, Kind.TEMPLATE_REF, Kind.NAMESPACE_REF, Kind.STATIC_ASSERT, Kind.CXX_UNARY_EXPR,
          Kind.SIZE_OF_PACK_EXPR, Kind.TYPE_ALIAS_DECL, Kind.TYPEDEF_DECL, Kind.ENUM_DECL, Kind.USING_DECLARATION,
          Kind.PARM_DECL, Kind.FRIEND_DECL}
WHOLE = {TypeKind.INT, TypeKind.UINT, TypeKind.LONG, TypeKind.ULONG, TypeKind.LONGLONG, TypeKind.ULONGLONG, TypeKind.SHORT,
         TypeKind.USHORT, TypeKind.UCHAR, TypeKind.SCHAR}


def kind_of(cursor):
    try:
        return cursor.kind
    except ValueError:  # newer than the binding
        return None


def from_main_file(location):
    function = cindex.conf.lib.clang_Location_isFromMainFile
    function.argtypes, function.restype = [cindex.SourceLocation], ctypes.c_int
    return bool(function(location))


READ_WITH = 0x1 | 0x4 | 0x100  # libclang: macros are remembered, and what a file includes is read once
READ_ONCE = 0x1  # for a file that is not read again


class Finder:
    def __init__(self, source: bytes, macros):
        self.source, self.macros = source, macros
        self.found = {}  # place -> None, in order
        self.skipped = 0  # out of macros
        self.returns = True  # not in a [[noreturn]] function, where the compiler may take a dropped throw for one that runs

    def text(self, start, end):
        return self.source[start:end]

    def in_macro(self, offset):
        at = bisect.bisect_right(self.macros, (offset, len(self.source))) - 1
        return at >= 0 and offset < self.macros[at][1]

    def add(self, start, end, change, text, form="expression"):
        # Lines stay where they are: what is said twice stands on one line.
        text = re.sub(rb"\s*\n\s*", b" ", re.sub(rb"//[^\n]*", b"", text))
        self.found.setdefault(Place(start, end, change, text, form))

    def visit(self, cursor, inside):
        kind = kind_of(cursor)
        start, end = cursor.extent.start, cursor.extent.end
        # A namespace may have a name that the compiler's command line gives, which is where it then is.
        if not inside and not from_main_file(start if kind == Kind.NAMESPACE else cursor.location):
            return  # of a file that is included in the middle of this one
        if kind in CLOSED:
            if inside and kind == Kind.DECL_REF_EXPR and not self.in_macro(start.offset):
                self.constant(cursor, start.offset, end.offset)
            return
        if inside and self.in_macro(start.offset):
            self.skipped += 1
            return
        children = list(cursor.get_children())
        if kind in FUNCTIONS:
            body = next((c.extent.start.offset for c in children if kind_of(c) == Kind.COMPOUND_STMT), end.offset)
            declared = self.text(max(self.source.rfind(b";", 0, start.offset), self.source.rfind(b"}", 0, start.offset), 0), body)
            self.returns = b"[[noreturn]]" not in declared
            self.visit_function(children)
            self.returns = True
            return
        if kind == Kind.LAMBDA_EXPR:
            for child in children:
                if kind_of(child) == Kind.COMPOUND_STMT:
                    self.visit(child, True)
            return
        if kind == Kind.VAR_DECL:
            if self.text(start.offset, end.offset).find(b"constexpr") < 0 and children:
                if kind_of(children[-1]) not in CLOSED and self.is_initializer(cursor, children[-1]):
                    self.visit(children[-1], inside)
            return
        if inside:
            self.look(cursor, kind, children)
        for child in self.open_children(cursor, kind, children):
            self.visit(child, inside)

    def visit_function(self, children):
        for child in children:
            kind = kind_of(child)
            if kind == Kind.COMPOUND_STMT or (kind is not None and kind.is_expression()):  # a body, an initializer
                self.visit(child, True)

    def is_initializer(self, variable, child):
        between = self.text(variable.extent.start.offset, child.extent.start.offset)
        return b"=" in between or b"(" in between or b"{" in between or self.text(
            child.extent.start.offset, child.extent.start.offset + 1) in (b"{", b"(") or child.extent.end.offset == variable.extent.end.offset

    def open_children(self, cursor, kind, children):
        if kind == Kind.MEMBER_REF_EXPR:  # the object; template arguments are not looked at
            return [c for c in children[:1] if c.extent.start.offset == cursor.extent.start.offset
                    and c.extent.end.offset < cursor.extent.end.offset]
        if kind == Kind.CASE_STMT:
            return children[1:]
        return children[1:] if self.is_decided_when_compiling(cursor, kind) else children

    def is_decided_when_compiling(self, cursor, kind):
        return kind == Kind.IF_STMT and re.match(rb"if\s+constexpr", self.text(cursor.extent.start.offset, cursor.extent.end.offset))

    def look(self, cursor, kind, children):
        start, end = cursor.extent.start.offset, cursor.extent.end.offset
        if kind == Kind.COMPOUND_STMT:
            for child in children:
                self.statement(child)
        elif kind == Kind.IF_STMT:
            if not self.is_decided_when_compiling(cursor, kind):
                self.condition(children)
            for child in children[1:]:
                self.statement(child)
        elif kind in (Kind.FOR_STMT, Kind.WHILE_STMT, Kind.CXX_FOR_RANGE_STMT, Kind.CASE_STMT, Kind.DEFAULT_STMT):
            for child in children[-1:]:
                self.statement(child)
        elif kind in (Kind.BINARY_OPERATOR, Kind.COMPOUND_ASSIGNMENT_OPERATOR):
            if len(children) == 2:
                self.operator(start, end, children[0].extent, children[1].extent)
        elif kind == Kind.UNARY_OPERATOR and len(children) == 1:
            self.unary(start, end, children[0].extent)
        elif kind == Kind.CONDITIONAL_OPERATOR and len(children) == 3:
            for name, part in (("first", children[1]), ("second", children[2])):
                self.add(start, end, f"always the {name} of ?:", self.of(part.extent))
        elif kind == Kind.CALL_EXPR:
            self.call(cursor, start, end)
        elif kind == Kind.RETURN_STMT and len(children) == 1 and children[0].type.kind == TypeKind.BOOL:
            extent = children[0].extent
            if self.of(extent) not in (b"true", b"false"):
                self.add(extent.start.offset, extent.end.offset, "return: negated", b"!(" + self.of(extent) + b")")
        elif kind in (Kind.INTEGER_LITERAL, Kind.FLOATING_LITERAL, Kind.CXX_BOOL_LITERAL_EXPR):
            self.literal(start, end)

    def of(self, extent):
        return self.text(extent.start.offset, extent.end.offset)

    def statement(self, child):
        start, end = child.extent.start.offset, child.extent.end.offset
        text, kind = self.text(start, end), kind_of(child)
        if self.in_macro(start) or NO_EFFECT.search(text) or (not self.returns and text.startswith(b"throw")):
            return
        if kind in (Kind.BREAK_STMT, Kind.CONTINUE_STMT) or (kind == Kind.RETURN_STMT and text == b"return"):
            self.add(start, end, f"dropped: {text.decode()}", b"", "jump")
        elif kind is not None and kind.is_expression():
            first = re.sub(rb"\s+", b" ", text).decode(errors="replace")
            self.add(start, end, f"dropped: {first if len(first) < 60 else first[:57] + '...'}", b"", "statement")

    def condition(self, children):
        if children and kind_of(children[0]) == Kind.DECL_STMT:
            children = children[1:]
        if not children or kind_of(children[0]) is None or not kind_of(children[0]).is_expression():
            return
        start, end = children[0].extent.start.offset, children[0].extent.end.offset
        if self.in_macro(start) or not re.match(rb"\s*\)", self.source[end:end + 40]):
            return
        for value in ("true", "false"):
            self.add(start, end, f"if ({value})", value.encode(), "condition")

    def operator(self, start, end, left, right):
        between = self.text(left.end.offset, right.start.offset)
        sign = between.strip().decode(errors="replace")
        a, b = self.of(left), self.of(right)
        if sign in ("&&", "||"):
            other = b"||" if sign == "&&" else b"&&"
            self.add(start, end, f"{sign} -> {other.decode()}", a + b" " + other + b" " + b)
            # As a truth value: beside the bool of the whole, a std::optional that converts from it would always hold.
            self.add(start, end, f"left of {sign} alone", b"static_cast<bool>(" + a + b")")
            self.add(start, end, f"right of {sign} alone", b"static_cast<bool>(" + b + b")")
            return
        for other in COMPARED.get(sign, []) + COMPUTED.get(sign, []) + ASSIGNED.get(sign, []):
            self.add(start, end, f"{sign} -> {other}", a + b" " + other.encode() + b" " + b)

    def unary(self, start, end, operand):
        text, inner = self.text(start, end), self.of(operand)
        if operand.start.offset > start:
            sign = self.text(start, operand.start.offset).strip()
            if sign == b"!":
                self.add(start, end, "! dropped", b"static_cast<bool>(" + inner + b")")
            elif sign == b"-":
                self.add(start, end, "- dropped", inner)
            elif sign in (b"++", b"--"):
                self.add(start, end, f"{sign.decode()} turned", (b"--" if sign == b"++" else b"++") + inner)
        elif text.endswith((b"++", b"--")):
            self.add(start, end, f"{text[-2:].decode()} turned", inner + (b"--" if text.endswith(b"++") else b"++"))

    def call(self, cursor, start, end):
        arguments = [a.extent for a in cursor.get_arguments() if a is not None]
        types = [a.type.get_canonical().spelling for a in cursor.get_arguments() if a is not None]
        name = cursor.spelling
        if name.startswith("operator") and not name[8:9].isalpha():
            if len(arguments) == 2 and name != "operator[]" and name != "operator()":
                sign = self.text(arguments[0].end.offset, arguments[1].start.offset).strip().decode(errors="replace")
                if sign in ("==", "!="):
                    self.add(start, end, f"{sign} negated", b"!(" + self.text(start, end) + b")")
                elif sign not in ("<<", ">>", "/", "|", "&"):  # streams, paths, flags
                    self.operator(start, end, arguments[0], arguments[1])
            return
        if name in COMMUTATIVE:
            return
        for i in range(len(arguments) - 1):
            a, b = arguments[i], arguments[i + 1]
            apart = start <= a.start.offset < a.end.offset <= b.start.offset < b.end.offset <= end
            if apart and types[i] == types[i + 1] and self.of(a) != self.of(b):
                swapped = (self.text(start, a.start.offset) + self.of(b) + self.text(a.end.offset, b.start.offset) + self.of(a)
                           + self.text(b.end.offset, end))
                self.add(start, end, f"arguments {i + 1} and {i + 2} of {name} swapped", swapped)

    def literal(self, start, end):
        text = self.text(start, end)
        if text in (b"true", b"false"):
            self.add(start, end, f"{text.decode()} turned", b"false" if text == b"true" else b"true")
        elif LITERAL.match(text):
            self.add(start, end, f"{text.decode()} + 1", b"(" + text + b" + 1)")
        elif REAL.match(text):
            zero = float(re.sub(rb"[fFlL']", b"", text)) == 0
            self.add(start, end, f"{text.decode()} {'+ 1' if zero else '* 2'}", b"(" + text + (b" + 1)" if zero else b" * 2)"))

    def constant(self, cursor, start, end):
        text = self.text(start, end)
        if re.match(rb"^(\w+::)*k[A-Z]\w*$", text) and cursor.type.get_canonical().kind in WHOLE:
            self.add(start, end, f"{text.decode()} + 1", b"(" + text + b" + 1)")


def find(unit, source: bytes):
    """The places of a parsed file, in their order, and how many nodes a macro hides."""
    macros, cursors = [], []
    for cursor in unit.cursor.get_children():
        if from_main_file(cursor.location):
            if kind_of(cursor) == Kind.MACRO_INSTANTIATION:
                macros.append((cursor.extent.start.offset, cursor.extent.end.offset))
            else:
                cursors.append(cursor)
    finder = Finder(source, sorted(macros))
    for cursor in cursors:
        finder.visit(cursor, False)
    places = sorted(finder.found, key=lambda p: (p.start, -p.end, p.change))
    return places, finder.skipped
