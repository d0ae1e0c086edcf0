// Archives over safetensors.
#include <tenon/nn/serialize/archive.h>

#include <tenon/autograd/grad_mode.h>
#include <tenon/ops/ops.h>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <istream>
#include <iterator>
#include <ostream>

namespace tenon {

void OutputArchive::write(const std::string& key, const Tensor& tensor, bool) {
  if (tensor.defined()) file_.tensors.insert(key, tensor);
}
void OutputArchive::write(const std::string& key, OutputArchive& nested) {
  put(key, "a:");
  for (const auto& item : nested.file_.tensors)
    file_.tensors.insert(fmt::format("{}.{}", key, item.key()), item.value());
  for (const auto& [name, text] : nested.file_.metadata) put(fmt::format("{}.{}", key, name), text);
}
void OutputArchive::write_text(const std::string& key, const std::string& text) { put(key, "s:" + text); }
void OutputArchive::write(const std::string& key, const IValue& value) {
  if (value.isTensor()) {
    write(key, value.toTensor());
  } else if (value.isBool()) {
    write_boolean(key, value.toBool());
  } else if (value.isInt()) {
    write_integer(key, value.toInt());
  } else if (value.isDouble()) {
    write_real(key, value.toDouble());
  } else if (value.isString()) {
    write_text(key, value.toStringRef());
  } else {
    throw Error(fmt::format("archive: the value of '{}' is of a kind that cannot be written", key));
  }
}
void OutputArchive::write_boolean(const std::string& key, bool value) { put(key, value ? "b:1" : "b:0"); }
void OutputArchive::write_integer(const std::string& key, std::int64_t value) { put(key, fmt::format("i:{}", value)); }
void OutputArchive::write_real(const std::string& key, double value) { put(key, fmt::format("d:{:a}", value)); }

void OutputArchive::put(const std::string& key, std::string text) {
  if (!file_.metadata.emplace(key, std::move(text)).second) throw Error(fmt::format("Key '{}' already defined", key));
}

void OutputArchive::save_to(const std::string& path) { nn::save_safetensors(file_, path); }
void OutputArchive::save_to(std::ostream& stream) {
  nn::write_safetensors(file_, [&](const void* data, std::size_t bytes) {
    stream.write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
  });
  if (!stream) throw Error("cannot write an archive to the stream");
}
void OutputArchive::save_to(const std::function<std::size_t(const void*, std::size_t)>& writer) {
  nn::write_safetensors(file_, [&](const void* data, std::size_t bytes) {
    if (writer(data, bytes) != bytes) throw Error("the writer of an archive did not take all bytes");
  });
}

void InputArchive::load_from(const std::string& path, std::optional<Device> device) {
  load_from(nn::load_safetensors(path, device));
}
void InputArchive::load_from(std::istream& stream, std::optional<Device> device) {
  const std::vector<char> bytes((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
  load_from(bytes.data(), bytes.size(), device);
}
void InputArchive::load_from(const char* data, std::size_t size, std::optional<Device> device) {
  load_from(nn::read_safetensors(std::as_bytes(std::span(data, size)), "archive", device));
}
void InputArchive::load_from(const std::function<std::size_t(std::uint64_t, void*, std::size_t)>& read,
                             const std::function<std::size_t()>& size, std::optional<Device> device) {
  std::vector<char> bytes(size());
  const std::size_t got = read(0, bytes.data(), bytes.size());
  if (got != bytes.size()) throw Error(fmt::format("archive: {} bytes read, {} announced", got, bytes.size()));
  load_from(bytes.data(), bytes.size(), device);
}
void InputArchive::load_from(nn::TensorFile file) {
  file_ = std::move(file);
  prefix_.clear();
  copies_to_.reset();
}
void InputArchive::copy_from(const std::string& path, Device device) {
  load_from(nn::view_safetensors(path));
  copies_to_ = device;
}

bool InputArchive::try_read(const std::string& key, Tensor& tensor, bool) {
  NoGradGuard no_grad;
  const Tensor* found = file_.tensors.find(key);
  if (found == nullptr) return false;
  const bool fits = tensor.defined() && tensor.sizes() == found->sizes() && tensor.dtype() == found->dtype();
  if (copies_to_ && fits) {
    tensor.copy_(*found);
    return true;
  }
  const Device device = tensor.defined() ? tensor.device() : copies_to_.value_or(found->device());
  const Tensor data = found->to(device, found->scalar_type(), /*non_blocking=*/false, /*copy=*/copies_to_.has_value());
  if (tensor.defined()) {
    tensor.set_data(data);
  } else {
    tensor = data;
  }
  return true;
}
void InputArchive::read(const std::string& key, Tensor& tensor, bool is_buffer) {
  if (!try_read(key, tensor, is_buffer) && tensor.defined()) {
    throw Error(fmt::format("No such serialized tensor '{}'", full_name(key)));
  }
}

bool InputArchive::try_read(const std::string& key, InputArchive& nested) {
  const std::string prefix = key + ".";
  nn::TensorFile below;
  for (const auto& item : file_.tensors) {
    if (item.key().starts_with(prefix)) below.tensors.insert(item.key().substr(prefix.size()), item.value());
  }
  for (const auto& [name, text] : file_.metadata) {
    if (name.starts_with(prefix)) below.metadata[name.substr(prefix.size())] = text;
  }
  const auto marked = file_.metadata.find(key);
  const bool exists = marked != file_.metadata.end() && marked->second == "a:";
  if (!exists && below.tensors.is_empty() && below.metadata.empty()) return false;
  const std::string path = full_name(key);
  nested.file_ = std::move(below);
  nested.prefix_ = path;
  nested.copies_to_ = copies_to_;
  return true;
}
void InputArchive::read(const std::string& key, InputArchive& nested) {
  if (!try_read(key, nested)) throw Error(fmt::format("No such serialized submodule: '{}'", full_name(key)));
}

bool InputArchive::try_read(const std::string& key, IValue& value) {
  if (Tensor tensor; try_read(key, tensor)) {
    value = tensor;
    return true;
  }
  const std::string text = try_read_raw(key).value_or("");
  switch (text[0]) {  // '\0' where there is none
    case 'b':
      value = read_boolean(key);
      return true;
    case 'i':
      value = read_integer(key);
      return true;
    case 'd':
      value = read_real(key);
      return true;
    case 's':
      value = read_text(key);
      return true;
    default:
      return false;
  }
}
void InputArchive::read(const std::string& key, IValue& value) {
  if (!try_read(key, value)) throw Error(fmt::format("archive does not have a field with name '{}'", full_name(key)));
}

std::optional<std::string> InputArchive::try_read_raw(const std::string& key) const {
  const auto found = file_.metadata.find(key);
  return found == file_.metadata.end() ? std::nullopt : std::optional(found->second);
}
std::string InputArchive::raw(const std::string& key, char kind) const {
  const auto text = try_read_raw(key);
  if (!text) throw Error(fmt::format("archive does not have a field with name '{}'", full_name(key)));
  if (text->size() < 2 || (*text)[0] != kind || (*text)[1] != ':') {
    throw Error(fmt::format("archive: the field '{}' is '{}', of another kind than '{}'", full_name(key), *text, kind));
  }
  return text->substr(2);
}
bool InputArchive::read_boolean(const std::string& key) const { return raw(key, 'b') == "1"; }
std::int64_t InputArchive::read_integer(const std::string& key) const {
  const std::string text = raw(key, 'i');
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw Error(fmt::format("archive: the field '{}' holds no integer: '{}'", full_name(key), text));
  }
  return value;
}
double InputArchive::read_real(const std::string& key) const {
  const std::string text = raw(key, 'd');
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0') {
    throw Error(fmt::format("archive: the field '{}' holds no number: '{}'", full_name(key), text));
  }
  return value;
}
std::string InputArchive::read_text(const std::string& key) const { return raw(key, 's'); }

std::vector<std::string> InputArchive::keys() const {
  std::vector<std::string> keys;
  const auto add = [&](const std::string& name) {
    const std::string first = name.substr(0, name.find('.'));
    if (std::find(keys.begin(), keys.end(), first) == keys.end()) keys.push_back(first);
  };
  for (const auto& item : file_.tensors) add(item.key());
  for (const auto& [name, text] : file_.metadata) add(name);
  return keys;
}

}  // namespace tenon
