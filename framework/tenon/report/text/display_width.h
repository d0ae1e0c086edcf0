// How many columns of a terminal a text takes, and breaking text into lines by that.
#pragma once

#include <tenon/core/export.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

/// Columns that UTF-8 takes on a terminal: 2 for a wide character, 0 for a combining one and for the escapes of
/// colours, 1 for a byte that is no UTF-8.
TENON_API std::size_t display_width(std::string_view text);

/// The text in lines of at most `width` columns, at least 1: broken at spaces, else behind one of `,;:/=._`, else
/// anywhere. Never empty.
TENON_API std::vector<std::string> lines_of_cell(std::string_view text, std::size_t width);

/// The columns that lines_of_cell needs so as to break nowhere else.
TENON_API std::size_t longest_piece(std::string_view text);

/// Sentences for a screen: each line longer than `columns` is broken at spaces and goes on below its own first word. A
/// word that is longer, as a path may be, stays whole on a line of its own. A command (text/command_line.h) is
/// continued with " \", and a comment behind it, as in "  export A=1   # why", stands above it. 0 columns: the text as
/// it is.
TENON_API std::string wrapped(std::string_view text, std::size_t columns);

/// Lines of two columns, as in a help: what follows `indent` columns goes on there. Words that are longer stay whole.
TENON_API std::string wrapped(std::string_view text, std::size_t columns, std::size_t indent);

/// The text's first columns, with "…" for what is left out. 0 columns: all of it.
TENON_API std::string shortened(std::string_view text, std::size_t columns);

}  // namespace tenon
