// One instruction: guard, opcode, operands; then what kind it is.
#include "support/emulated_cuda/ptx/instruction_reader.h"

#include "support/emulated_cuda/misuse.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <sstream>

namespace tenon::emulated_cuda::ptx {

namespace {

const char* const kSpecials[] = {"%tid.x",       "%tid.y",       "%tid.z",       "%ntid.x",      "%ntid.y",
                                 "%ntid.z",      "%ctaid.x",     "%ctaid.y",     "%ctaid.z",     "%nctaid.x",
                                 "%nctaid.y",    "%nctaid.z",    "%laneid",      "%warpid",      "WARP_SZ",
                                 "%lanemask_eq", "%lanemask_lt", "%lanemask_le", "%lanemask_gt", "%lanemask_ge"};

std::string trimmed(const std::string& text) {
  const auto begin = text.find_first_not_of(" \t\n");
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(" \t\n") + 1 - begin);
}

/// At commas outside of braces, brackets and parentheses.
std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  int depth = 0;
  std::string open;
  for (const char c : text) {
    depth += c == '{' || c == '[' || c == '(' ? 1 : c == '}' || c == ']' || c == ')' ? -1 : 0;
    if (c == ',' && depth == 0) {
      parts.push_back(trimmed(open));
      open.clear();
    } else {
      open += c;
    }
  }
  if (!trimmed(open).empty()) parts.push_back(trimmed(open));
  return parts;
}

std::uint64_t number_of(const std::string& text) {
  if (text.starts_with("0f") || text.starts_with("0F") || text.starts_with("0d") || text.starts_with("0D"))
    return std::stoull(text.substr(2), nullptr, 16);
  if (text[0] == '-') return static_cast<std::uint64_t>(std::stoll(text, nullptr, 0));
  return std::stoull(text, nullptr, 0);
}

Operand operand_of(const std::string& text, Names& names, std::string& unknown) {
  Operand operand;
  const auto special = std::find(std::begin(kSpecials), std::end(kSpecials), text);
  if (special != std::end(kSpecials)) {
    operand.kind = Operand::Kind::kSpecial;
    operand.value = static_cast<std::uint64_t>(special - std::begin(kSpecials));
  } else if (std::isdigit(static_cast<unsigned char>(text[0])) || text[0] == '-') {
    operand.kind = Operand::Kind::kImmediate;
    operand.value = number_of(text);
  } else if (const auto address = names.addresses.find(text); address != names.addresses.end()) {
    operand.kind = Operand::Kind::kImmediate;
    operand.value = address->second;
  } else if (const auto variable = names.variables.find(text); variable != names.variables.end()) {
    operand.kind = Operand::Kind::kSymbol;
    operand.value = variable->second;
  } else if (text[0] == '%' || names.registers.contains(text) || text == "_") {
    operand.kind = Operand::Kind::kRegister;
    const auto [found, added] = names.registers.try_emplace(text, names.register_count);
    names.register_count += added;
    operand.value = found->second;
  } else {
    unknown = text;
  }
  return operand;
}

/// "[%rd1+8]", "[name]", "[name+4]"
Operand address_of(const std::string& text, Names& names, std::string& unknown) {
  const std::string inside = trimmed(text.substr(1, text.size() - 2));
  const auto sign = inside.find_first_of("+-", 1);
  Operand operand = operand_of(trimmed(inside.substr(0, sign)), names, unknown);
  if (sign != std::string::npos) operand.offset = std::stoll(inside.substr(inside[sign] == '+' ? sign + 1 : sign));
  return operand;
}

bool has(const std::vector<std::string>& parts, const std::string& part) {
  return std::find(parts.begin(), parts.end(), part) != parts.end();
}

std::vector<std::string> parts_of(const std::string& opcode) {
  std::vector<std::string> parts;
  std::istringstream in(opcode);
  for (std::string part; std::getline(in, part, '.');) parts.push_back(part);
  return parts;
}

[[noreturn]] void not_emulated(const std::string& opcode) { misuse("the PTX opcode " + opcode + " is not emulated"); }

/// What stands between an opcode and its type must be of `known`, which has a space around every word.
void expect_known(const std::string& opcode, const std::vector<std::string>& parts, const std::string& known,
                  std::size_t end) {
  for (std::size_t i = 1; i < end; ++i) {
    if (known.find(" " + parts[i] + " ") == std::string::npos) not_emulated(opcode);
  }
}
// Scopes and orders: all are as strong as the strongest here.
#define TENON_PTX_ORDERS " relaxed acquire release acq_rel cta gpu sys "

/// The mask of instructions that all of a warp execute together.
const Operand kWholeWarp{Operand::Kind::kImmediate, 0xffffffffU, 0};

std::vector<std::string> elements_of(const std::string& text) {
  return text[0] == '{' ? split(text.substr(1, text.size() - 2)) : std::vector<std::string>{text};
}

void read_memory_access(Instruction& instruction, const std::vector<std::string>& parts,
                        const std::vector<std::string>& operands, Names& names) {
  // Spaces, orders, vectors; the rest are hints to caches.
  expect_known(instruction.opcode, parts,
               TENON_PTX_ORDERS " global const shared local param volatile weak v2 v4 nc ca cg cs lu cv wb wt ",
               parts.size() - 1);
  instruction.space = has(parts, "global") || has(parts, "const") ? Space::kGlobal
                      : has(parts, "shared")                      ? Space::kShared
                      : has(parts, "local")                       ? Space::kLocal
                      : has(parts, "param")                       ? Space::kParam
                                                                  : Space::kGeneric;
  const std::string& type = parts.back();
  instruction.bytes = std::stoul(type.substr(type.find_first_of("0123456789"))) / 8;
  instruction.is_signed = type[0] == 's';
  instruction.strong =
      has(parts, "volatile") || has(parts, "relaxed") || has(parts, "acquire") || has(parts, "release");
  instruction.constant = has(parts, "nc");
  const bool store = instruction.kind == Kind::kStore;
  instruction.in.push_back(address_of(operands[store ? 0 : 1], names, instruction.name));
  for (const std::string& element : elements_of(operands[store ? 1 : 0]))
    (store ? instruction.in : instruction.out).push_back(operand_of(element, names, instruction.mode));
}

/// atom.SPACE.OP.TYPE and red: the arithmetic is that of an ordinary opcode.
void read_atomic(Instruction& instruction, const std::vector<std::string>& parts,
                 const std::vector<std::string>& operands, Names& names) {
  instruction.kind = Kind::kAtomic;
  expect_known(instruction.opcode, parts, TENON_PTX_ORDERS " global shared add min max and or xor exch cas ",
               parts.size() - 1);
  instruction.space = has(parts, "shared") ? Space::kShared : has(parts, "global") ? Space::kGlobal : Space::kGeneric;
  const std::string& type = parts.back();
  instruction.bytes = std::stoul(type.substr(type.find_first_of("0123456789"))) / 8;
  for (const char* mode : {"add", "min", "max", "and", "or", "xor", "exch", "cas"}) {
    if (has(parts, mode)) instruction.mode = mode;
  }
  if (instruction.mode != "cas" && instruction.mode != "exch")
    instruction.operation = find_operation(instruction.mode + "." + type);
  if (instruction.mode.empty() ||
      (instruction.operation.compute == nullptr && instruction.mode != "cas" && instruction.mode != "exch"))
    not_emulated(instruction.opcode);
  const bool result = parts[0] == "atom";
  if (result) instruction.out.push_back(operand_of(operands[0], names, instruction.name));
  instruction.in.push_back(address_of(operands[result ? 1 : 0], names, instruction.name));
  for (std::size_t i = result ? 2 : 1; i < operands.size(); ++i)
    instruction.in.push_back(operand_of(operands[i], names, instruction.name));
}

/// ldmatrix.sync.aligned.m8n8.xN[.trans].shared.b16 {d, …}, [row]: all of a warp together.
void read_matrix_load(Instruction& instruction, const std::vector<std::string>& parts,
                      const std::vector<std::string>& operands, Names& names) {
  instruction.kind = Kind::kMatrixLoad;
  expect_known(instruction.opcode, parts, " sync aligned m8n8 x1 x2 x4 trans shared b16 ", parts.size());
  instruction.mode = has(parts, "trans") ? "trans" : "";
  instruction.space = has(parts, "shared") ? Space::kShared : Space::kGeneric;
  for (const std::string& element : elements_of(operands.at(0)))
    instruction.out.push_back(operand_of(element, names, instruction.name));
  const std::size_t matrices = has(parts, "x4") ? 4 : has(parts, "x2") ? 2 : 1;
  if (!has(parts, "m8n8") || !has(parts, "b16") || operands.size() != 2 || instruction.out.size() != matrices)
    not_emulated(instruction.opcode);
  instruction.in = {address_of(operands[1], names, instruction.name), kWholeWarp};
}

/// mma.sync.aligned.m16n8k16.row.col.f32.T.T.f32 {d, d, d, d}, {a, a, a, a}, {b, b}, {c, c, c, c} of f16 and bf16.
void read_matrix_product(Instruction& instruction, const std::vector<std::string>& operands, Names& names) {
  instruction.kind = Kind::kMatrixProduct;
  for (const char* type : {"f16", "bf16"}) {
    const std::string both = std::string(".") + type + "." + type;
    if (instruction.opcode == "mma.sync.aligned.m16n8k16.row.col.f32" + both + ".f32") instruction.mode = type;
  }
  if (instruction.mode.empty() || operands.size() != 4) not_emulated(instruction.opcode);
  for (std::size_t i = 0; i < operands.size(); ++i) {
    for (const std::string& element : elements_of(operands[i]))
      (i == 0 ? instruction.out : instruction.in).push_back(operand_of(element, names, instruction.name));
  }
  if (instruction.out.size() != 4 || instruction.in.size() != 10) not_emulated(instruction.opcode);
  instruction.in.push_back(kWholeWarp);
}

/// cp.async.{ca,cg}.shared.global [to], [from], bytes{, bytes that are read}; cp.async.commit_group; .wait_group n;
/// .wait_all.
void read_copy(Instruction& instruction, const std::vector<std::string>& parts,
               const std::vector<std::string>& operands, Names& names) {
  if (instruction.opcode == "cp.async.commit_group") {
    instruction.kind = Kind::kCopyCommit;
  } else if (instruction.opcode == "cp.async.wait_all") {
    instruction.kind = Kind::kCopyWait;
  } else if (instruction.opcode == "cp.async.wait_group") {
    instruction.kind = Kind::kCopyWait;
    instruction.in.push_back(operand_of(operands.at(0), names, instruction.name));
  } else {
    instruction.kind = Kind::kCopy;
    const bool known = parts.size() == 5 && parts[1] == "async" && (parts[2] == "ca" || parts[2] == "cg") &&
                       parts[3] == "shared" && parts[4] == "global" && (operands.size() == 3 || operands.size() == 4);
    if (!known) not_emulated(instruction.opcode);
    instruction.in.push_back(address_of(operands[0], names, instruction.name));
    instruction.in.push_back(address_of(operands[1], names, instruction.name));
    for (std::size_t i = 2; i < operands.size(); ++i)
      instruction.in.push_back(operand_of(operands[i], names, instruction.name));
    instruction.bytes = instruction.in[2].value;
    const bool sizes =
        instruction.bytes == 16 || (parts[2] == "ca" && (instruction.bytes == 4 || instruction.bytes == 8));
    if (instruction.in[2].kind != Operand::Kind::kImmediate || !sizes)
      misuse("the PTX opcode " + instruction.opcode + " does not copy " + operands[2] + " bytes");
  }
}

/// call (results), name, (arguments)
void read_call(Instruction& instruction, const std::vector<std::string>& operands) {
  instruction.kind = Kind::kCall;
  const auto list = [](const std::string& text) { return split(text.substr(1, text.size() - 2)); };
  std::size_t at = 0;
  if (operands[0][0] == '(') instruction.results = list(operands[at++]);
  instruction.name = operands.at(at++);
  if (at < operands.size()) instruction.arguments = list(operands[at]);
}

bool read_control(Instruction& instruction, const std::vector<std::string>& parts,
                  const std::vector<std::string>& operands, Names& names) {
  const std::string& base = parts[0];
  const auto take = [&](std::size_t from) {
    for (std::size_t i = from; i < operands.size(); ++i)
      instruction.in.push_back(operand_of(operands[i], names, instruction.name));
  };
  if (base == "bra") {
    instruction.kind = Kind::kBranch;
    instruction.name = operands[0];
  } else if (base == "ret") {
    instruction.kind = Kind::kReturn;
  } else if (base == "exit") {
    instruction.kind = Kind::kExit;
  } else if (base == "trap") {
    instruction.kind = Kind::kTrap;
  } else if (base == "call") {
    read_call(instruction, operands);
  } else if (base == "membar" || base == "fence") {
    expect_known(instruction.opcode, parts, TENON_PTX_ORDERS " sc gl ", parts.size());
    instruction.kind = Kind::kFence;
  } else if ((base == "bar" || base == "barrier") && has(parts, "warp")) {
    instruction.kind = Kind::kWarpBarrier;
    take(0);
  } else if ((base == "bar" || base == "barrier") && has(parts, "sync") && operands.size() == 1) {
    instruction.kind = Kind::kBarrier;
    take(0);
  } else if ((base == "bar" || base == "barrier") && has(parts, "sync")) {
    not_emulated(instruction.opcode + " for a part of the block");
  } else if ((base == "bar" || base == "barrier") && has(parts, "red") && operands.size() == 3) {
    instruction.kind = Kind::kBarrier;
    instruction.mode = has(parts, "popc") ? "popc" : has(parts, "and") ? "and" : "or";
    instruction.out.push_back(operand_of(operands[0], names, instruction.name));
    take(1);
  } else if (base == "shfl" || base == "vote" || base == "match") {
    instruction.kind = base == "shfl" ? Kind::kShuffle : base == "vote" ? Kind::kVote : Kind::kMatch;
    instruction.mode = parts.at(base == "match" ? 1 : 2);
    const auto pair = operands[0].find('|');
    instruction.out.push_back(operand_of(trimmed(operands[0].substr(0, pair)), names, instruction.name));
    if (pair != std::string::npos)
      instruction.out.push_back(operand_of(trimmed(operands[0].substr(pair + 1)), names, instruction.name));
    take(1);
    if (base == "match" && instruction.mode != "any") return false;
  } else if (base == "activemask") {
    instruction.kind = Kind::kActiveMask;
    instruction.out.push_back(operand_of(operands[0], names, instruction.name));
  } else {
    return false;
  }
  return true;
}

void read_plain(Instruction& instruction, const std::vector<std::string>& parts,
                const std::vector<std::string>& operands, Names& names) {
  const bool packs = parts[0] == "mov" && operands.size() == 2 && (operands[0][0] == '{' || operands[1][0] == '{');
  if (packs) {
    instruction.kind = operands[0][0] == '{' ? Kind::kUnpack : Kind::kPack;
    const std::size_t count = std::max(elements_of(operands[0]).size(), elements_of(operands[1]).size());
    instruction.bytes = std::stoul(parts[1].substr(1)) / 8 / count;
    for (const std::string& element : elements_of(operands[0]))
      instruction.out.push_back(operand_of(element, names, instruction.name));
    for (const std::string& element : elements_of(operands[1]))
      instruction.in.push_back(operand_of(element, names, instruction.name));
    return;
  }
  instruction.operation = find_operation(instruction.opcode);
  if (instruction.operation.compute == nullptr) not_emulated(instruction.opcode);
  if (operands.size() != instruction.operation.inputs + 1)
    misuse("the PTX opcode " + instruction.opcode + " is not emulated with " + std::to_string(operands.size()) +
           " operands");
  instruction.out.push_back(operand_of(operands[0], names, instruction.name));
  for (std::size_t i = 1; i < operands.size(); ++i)
    instruction.in.push_back(operand_of(operands[i], names, instruction.name));
}

/// cvta: an address of a window from or to a generic one.
bool read_address_conversion(Instruction& instruction, const std::vector<std::string>& parts,
                             const std::vector<std::string>& operands, Names& names) {
  if (parts[0] != "cvta") return false;
  const std::uint64_t window = has(parts, "shared") ? kSharedWindow : has(parts, "local") ? kLocalWindow : 0;
  const Compute add = [](const std::uint64_t* in, std::uint64_t&) { return in[0] + in[1]; };
  instruction.operation = {add, 2};
  instruction.out.push_back(operand_of(operands[0], names, instruction.name));
  instruction.in.push_back(operand_of(operands[1], names, instruction.name));
  instruction.in.push_back({Operand::Kind::kImmediate, has(parts, "to") ? 0 - window : window, 0});
  return true;
}

}  // namespace

Instruction read_instruction(const std::string& statement, Names& names) {
  Instruction instruction;
  std::string text = statement;
  if (text[0] == '@') {
    instruction.guard_negated = text[1] == '!';
    const auto end = text.find_first_of(" \t");
    const std::size_t begin = instruction.guard_negated ? 2 : 1;
    instruction.guard = operand_of(text.substr(begin, end - begin), names, instruction.name);
    text = trimmed(text.substr(end));
  }
  const auto end = text.find_first_of(" \t");
  instruction.opcode = text.substr(0, end);
  const std::vector<std::string> parts = parts_of(instruction.opcode);
  const std::vector<std::string> operands =
      end == std::string::npos ? std::vector<std::string>{} : split(text.substr(end));
  if (read_control(instruction, parts, operands, names)) return instruction;
  if (read_address_conversion(instruction, parts, operands, names)) return instruction;
  if (parts[0] == "ld" || parts[0] == "ldu" || parts[0] == "st") {
    instruction.kind = parts[0] == "st" ? Kind::kStore : Kind::kLoad;
    read_memory_access(instruction, parts, operands, names);
  } else if (parts[0] == "atom" || parts[0] == "red") {
    read_atomic(instruction, parts, operands, names);
  } else if (parts[0] == "ldmatrix") {
    read_matrix_load(instruction, parts, operands, names);
  } else if (parts[0] == "mma") {
    read_matrix_product(instruction, operands, names);
  } else if (parts[0] == "cp" && parts.size() > 1 && parts[1] == "async") {
    read_copy(instruction, parts, operands, names);
  } else {
    read_plain(instruction, parts, operands, names);
  }
  return instruction;
}

}  // namespace tenon::emulated_cuda::ptx
