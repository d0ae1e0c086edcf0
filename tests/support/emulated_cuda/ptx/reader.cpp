// PTX text to a module: statements first, then one after the other.
#include "support/emulated_cuda/misuse.h"
#include "support/emulated_cuda/ptx/instruction_reader.h"
#include "support/emulated_cuda/ptx/module.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <utility>

namespace tenon::emulated_cuda::ptx {

namespace {

/// A declaration, an instruction without its ';', "{", "}", a label with its ':', or a ".loc" with its numbers.
std::vector<std::string> statements_of(std::string_view text) {
  std::vector<std::string> found;
  std::string open;
  int braces_inside = 0;  // of a vector operand or of initial values
  const auto close = [&](bool keep_empty = false) {
    const auto begin = open.find_first_not_of(" \t\n");
    if (begin != std::string::npos || keep_empty)
      found.push_back(open.substr(begin, open.find_last_not_of(" \t\n") + 1 - begin));
    open.clear();
  };
  std::size_t at = 0;
  while (at < text.size()) {
    std::size_t end = text.find('\n', at);
    if (end == std::string_view::npos) end = text.size();
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    if (const auto comment = line.find("//"); comment != std::string_view::npos) line = line.substr(0, comment);
    const auto begin = line.find_first_not_of(" \t");
    if (begin == std::string_view::npos) continue;
    const std::string_view word = line.substr(begin, line.find_first_of(" \t", begin) - begin);
    if (word == ".section") break;  // debug information is at the end
    if (word == ".version" || word == ".target" || word == ".address_size") continue;
    if (word == ".loc" || word == ".file") {
      close();
      found.emplace_back(line.substr(begin));
      continue;
    }
    for (std::size_t i = 0; i < line.size(); ++i) {
      const char c = line[i];
      const bool is_pair = line.substr(i, 2) == "::" || (i > 0 && line.substr(i - 1, 2) == "::");  // of an opcode
      const bool alone = open.find_first_not_of(" \t\n") == std::string::npos;
      if (c == ';') {
        close();
      } else if (c == '{' && !alone && !open.ends_with(')') && open.find(".entry") == std::string::npos &&
                 open.find(".func") == std::string::npos) {
        ++braces_inside;
        open += c;
      } else if (c == '}' && braces_inside > 0) {
        --braces_inside;
        open += c;
      } else if (c == '{' || c == '}') {
        close();
        found.emplace_back(1, c);
      } else if (c == ':' && !is_pair && braces_inside == 0 &&
                 open.find_first_of(" \t", open.find_first_not_of(" \t\n")) == std::string::npos) {
        open += c;
        close();
      } else {
        open += c;
      }
    }
    open += ' ';
  }
  return found;
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

/// ".loc" and not ".local"
bool is_directive(const std::string& statement, std::string_view name) {
  return statement.starts_with(name) && std::isspace(static_cast<unsigned char>(statement[name.size()])) != 0;
}

std::size_t bytes_of_type(std::string_view type) {
  if (type == ".pred") return 1;
  std::size_t bits = 0;
  const auto digits = type.find_first_of("0123456789");
  std::from_chars(type.data() + digits, type.data() + type.size(), bits);
  return bits / 8;
}

/// ".align 8 .b8 name[16]" or ".u64 name": type, name and bytes of a declared variable.
struct Declared {
  std::string name;
  std::size_t bytes = 0;
  std::size_t alignment = 0;
};
Declared declared(const std::string& text) {
  Declared result;
  std::size_t element = 0;
  const std::vector<std::string> words = words_of(text.substr(0, text.find('=')));
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == ".align") {
      result.alignment = std::stoul(words[++i]);
    } else if (words[i] == ".ptr") {
      continue;
    } else if (words[i][0] == '.' && words[i].find_first_of("0123456789") != std::string::npos) {
      element = bytes_of_type(words[i]);
    } else if (words[i][0] != '.') {
      result.name = words[i];
    }
  }
  std::size_t count = 1;
  if (const auto bracket = result.name.find('['); bracket != std::string::npos) {
    const std::string inside = result.name.substr(bracket + 1, result.name.find(']') - bracket - 1);
    count = inside.empty() ? 0 : std::stoul(inside);
    result.name.resize(bracket);
  }
  result.bytes = element * count;
  if (result.alignment == 0) result.alignment = std::max<std::size_t>(element, 1);
  return result;
}

std::size_t place(std::size_t& end, const Declared& variable) {
  const std::size_t offset = (end + variable.alignment - 1) / variable.alignment * variable.alignment;
  end = offset + variable.bytes;
  return offset;
}

/// Lives as long as a function of its module has not been read.
class Reader : public std::enable_shared_from_this<Reader> {
 public:
  explicit Reader(std::string_view text) : statements_(statements_of(text)) {}

  Module read() {
    Module module;
    while (at_ < statements_.size()) {
      const std::string& statement = statements_[at_];
      if (is_directive(statement, ".file")) {
        const auto words = words_of(statement);
        module.files[std::stoi(words[1])] = words[2].substr(1, words[2].rfind('"') - 1);
      } else if (statement.find(".entry") != std::string::npos || statement.find(".func") != std::string::npos) {
        read_function(module, statement);
      } else if (statement.find(".shared") != std::string::npos) {
        shared_of_module_.push_back(statement);
      } else if (statement.find(".global") != std::string::npos || statement.find(".const") != std::string::npos) {
        read_variable(module, statement);
      } else if (!is_directive(statement, ".loc") && !statement.starts_with(".pragma")) {
        misuse("the PTX reader does not know \"" + statement + "\"");
      }
      ++at_;
    }
    return module;
  }

  /// The instructions of a function whose braces open at that statement.
  void read_code(const Module& module, Function& function, std::size_t open) {
    at_ = open;
    read_body(module, function);
    for (Instruction& instruction : function.code) {
      if (instruction.kind != Kind::kCall) continue;
      if (!module.functions.contains(instruction.name))
        misuse("PTX calls " + instruction.name + ", which is not in the module");
      instruction.callee = &module.function(instruction.name);
    }
  }

 private:
  static void read_variable(Module& module, const std::string& statement) {
    const Declared variable = declared(statement);
    Variable made{
        .name = variable.name, .alignment = variable.alignment, .bytes = std::vector<unsigned char>(variable.bytes)};
    if (const auto values = statement.find('{'); values != std::string::npos) {
      std::string numbers = statement.substr(values + 1, statement.find('}') - values - 1);
      std::replace(numbers.begin(), numbers.end(), ',', ' ');
      std::istringstream in(numbers);
      if (statement.find(".b8 ") == std::string::npos)
        misuse("PTX initialises " + variable.name + " by other than bytes");
      std::size_t i = 0;
      for (unsigned value = 0; in >> value; ++i) made.bytes.at(i) = static_cast<unsigned char>(value);
    }
    module.variables.push_back(std::move(made));
  }

  /// The parameters between a pair of parentheses, placed in the frame.
  std::vector<std::string> place_params(Function& function, const std::string& list) {
    std::vector<std::string> names;
    std::istringstream in(list);
    for (std::string one; std::getline(in, one, ',');) {
      if (one.find_first_not_of(" \t\n") == std::string::npos) continue;
      const Declared variable = declared(one);
      function.params[variable.name] = {place(function.param_bytes, variable), variable.bytes};
      names.push_back(variable.name);
    }
    return names;
  }

  void read_function(Module& module, const std::string& statement) {
    auto function = std::make_unique<Function>();
    function->entry = statement.find(".entry") != std::string::npos;
    const std::size_t keyword = statement.find(function->entry ? ".entry" : ".func") + (function->entry ? 6 : 5);
    std::size_t at = statement.find_first_not_of(" \t\n", keyword);
    if (statement[at] == '(') {
      const std::size_t end = statement.find(')', at);
      function->result_names = place_params(*function, statement.substr(at + 1, end - at - 1));
      at = statement.find_first_not_of(" \t\n", end + 1);
    }
    const std::size_t name_end = statement.find_first_of(" \t\n(", at);
    function->name = statement.substr(at, name_end - at);
    std::size_t end = name_end;
    if (const std::size_t open = statement.find('(', at); open != std::string::npos) {
      end = statement.find(')', open);
      function->parameter_names = place_params(*function, statement.substr(open + 1, end - open - 1));
    }
    if (const std::size_t limit = statement.find(".maxntid", end); limit != std::string::npos) {
      function->max_threads = 1;
      std::string numbers = statement.substr(limit + 8);
      std::replace(numbers.begin(), numbers.end(), ',', ' ');
      std::istringstream in(numbers);
      for (std::size_t value = 0; in >> value;) function->max_threads *= value;
    }
    if (at_ + 1 >= statements_.size() || statements_[at_ + 1] != "{") return;  // declared, defined elsewhere
    const std::size_t open = ++at_;
    function->read = [reader = shared_from_this(), open](const Module& of, Function& it) {
      reader->read_code(of, it, open);
    };
    for (int depth = 1; depth > 0;) {
      if (++at_ >= statements_.size()) misuse("the PTX of " + function->name + " has no end");
      depth += statements_[at_] == "{" ? 1 : statements_[at_] == "}" ? -1 : 0;
    }
    module.functions[function->name] = std::move(function);
  }

  void read_body(const Module& module, Function& function) {
    Names names;
    for (std::size_t i = 0; i < module.variables.size(); ++i) names.variables[module.variables[i].name] = i;
    int depth = 0;
    std::map<std::string, std::size_t> labels;
    int file = 0;
    int line = 0;
    std::vector<std::string> dynamic;
    hidden_.clear();
    for (const std::string& statement : shared_of_module_) {
      const Declared variable = declared(statement);
      if (!body_names(variable.name)) continue;
      if (!function.entry)
        misuse("shared memory of the module in a function that is called (" + function.name + ") is not emulated");
      if (variable.bytes == 0) {
        dynamic.push_back(variable.name);
      } else {
        names.addresses[variable.name] = place(function.shared_bytes, variable);
      }
    }
    do {
      const std::string& statement = statements_[at_];
      if (statement == "{") {
        ++depth;
        hidden_.emplace_back();
      } else if (statement == "}") {
        --depth;
        leave_braces(names);
      } else if (is_directive(statement, ".loc")) {
        const auto words = words_of(statement);
        if (statement.find("inlined_at") == std::string::npos && words[2] != "0")
          file = std::stoi(words[1]), line = std::stoi(words[2]);
      } else if (statement.ends_with(":")) {
        labels[statement.substr(0, statement.size() - 1)] = function.code.size();
      } else if (statement[0] == '.') {
        read_declaration(function, names, statement, dynamic);
      } else {
        Instruction instruction = read_instruction(statement, names);
        instruction.file = file;
        instruction.line = line;
        function.code.push_back(std::move(instruction));
      }
      if (depth > 0) ++at_;
    } while (depth > 0);
    for (const std::string& name : dynamic) {
      for (Instruction& instruction : function.code) bind(instruction, name, (function.shared_bytes + 15) / 16 * 16);
    }
    for (Instruction& instruction : function.code) {  // the address of a parameter is its place in the frame
      const auto parameter = function.params.find(instruction.name);
      if (instruction.kind == Kind::kPlain && parameter != function.params.end())
        bind(instruction, parameter->first, parameter->second.offset);
    }
    for (Instruction& instruction : function.code) {
      if (instruction.kind != Kind::kBranch) continue;
      const auto found = labels.find(instruction.name);
      if (found == labels.end()) misuse("PTX branches to " + instruction.name + ", which is nowhere");
      instruction.target = found->second;
    }
    function.registers = names.register_count;
    lay_out(function);
  }

  /// A name that the inner braces declared means what it meant outside.
  void leave_braces(Names& names) {
    for (const auto& [name, outside] : hidden_.back()) {
      if (outside) {
        names.registers[name] = *outside;
      } else {
        names.registers.erase(name);
      }
    }
    hidden_.pop_back();
  }

  /// Whether the body that begins here uses a variable of the module: a kernel has the shared ones that it uses.
  bool body_names(const std::string& name) const {
    int depth = 0;
    for (std::size_t at = at_; at < statements_.size(); ++at) {
      depth += statements_[at] == "{" ? 1 : statements_[at] == "}" ? -1 : 0;
      if (depth == 0) return false;
      const std::size_t found = statements_[at].find(name);
      if (found == std::string::npos) continue;
      const std::size_t end = found + name.size();
      if (end == statements_[at].size() || std::strchr(" \t,;]+", statements_[at][end]) != nullptr) return true;
    }
    return false;
  }

  /// Dynamic shared memory lies behind the static one, whose size is known at the end.
  static void bind(Instruction& instruction, const std::string& name, std::uint64_t address) {
    if (instruction.name != name) return;
    for (Operand& operand : instruction.in) {
      if (operand.kind == Operand::Kind::kNone) {
        operand.kind = Operand::Kind::kImmediate;
        operand.value = address;
      }
    }
  }

  void read_declaration(Function& function, Names& names, const std::string& statement,
                        std::vector<std::string>& dynamic) {
    if (statement.starts_with(".pragma")) return;
    if (statement.starts_with(".reg")) {
      std::string list = statement.substr(statement.find_first_of(" \t", statement.find('.', 1)));
      std::replace(list.begin(), list.end(), ',', ' ');
      for (const std::string& name : words_of(list)) {
        if (name.find('<') != std::string::npos) continue;
        const auto outside = names.registers.find(name);
        hidden_.back().emplace(name, outside == names.registers.end() ? std::nullopt : std::optional(outside->second));
        names.registers[name] = names.register_count++;
      }
      return;
    }
    const Declared variable = declared(statement);
    if (statement.starts_with(".param")) {
      function.params[variable.name] = {place(function.param_bytes, variable), variable.bytes};
    } else if (statement.starts_with(".local")) {
      names.addresses[variable.name] = place(function.local_bytes, variable);
    } else if (statement.starts_with(".shared") && variable.bytes != 0) {
      names.addresses[variable.name] = place(function.shared_bytes, variable);
    } else if (statement.starts_with(".shared")) {
      dynamic.push_back(variable.name);
    } else {
      misuse("the PTX reader does not know \"" + statement + "\"");
    }
  }

  std::vector<std::string> statements_;
  std::size_t at_ = 0;
  std::vector<std::string> shared_of_module_;
  std::vector<std::map<std::string, std::optional<std::uint64_t>>> hidden_;  ///< by each open brace
};

}  // namespace

const Function& Module::function(std::string_view name) const {
  const auto found = functions.find(name);
  if (found == functions.end()) misuse("the PTX has no function " + std::string(name));
  Function& function = *found->second;
  if (const auto read = std::exchange(function.read, nullptr)) read(*this, function);
  return function;
}

Module read_module(std::string_view text) {
  constexpr std::string_view kTarget = ".target sm_";
  Module module = std::make_shared<Reader>(text)->read();
  if (const auto at = text.find(kTarget); at != std::string_view::npos)
    module.target = std::atoi(text.data() + at + kTarget.size());
  return module;
}

}  // namespace tenon::emulated_cuda::ptx
