// Archives: tensors and plain values by name, nested, written as safetensors. What save() and load() of modules,
// optimisers and samplers read and write.
//
// Nested names are joined by dots: the file of a model holds "layer1.weight". Values that are not tensors stand in the
// metadata as text: "i:7", "d:0x1.8p+1", "b:1", "s:text"; archives as "a:".
#pragma once

#include <tenon/autograd/ivalue.h>
#include <tenon/core/export.h>
#include <tenon/nn/serialize/safetensors.h>
#include <tenon/tensor/tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace tenon {

class TENON_API OutputArchive {
 public:
  /// An undefined tensor is left out. Throws Error for a name that is taken.
  void write(const std::string& key, const Tensor& tensor, bool is_buffer = false);
  void write(const std::string& key, OutputArchive& nested);
  /// A string. Throws Error for a name that is taken.
  void write_text(const std::string& key, const std::string& text);
  /// A tensor, boolean, integer, number or string. Throws Error for the other kinds.
  void write(const std::string& key, const IValue& value);
  template <class T>
  requires std::is_arithmetic_v<T>
  void write(const std::string& key, T value) {
    if constexpr (std::is_same_v<T, bool>) {
      write_boolean(key, value);
    } else if constexpr (std::is_integral_v<T>) {
      write_integer(key, static_cast<std::int64_t>(value));
    } else {
      write_real(key, static_cast<double>(value));
    }
  }

  /// Writes all that was added to the archive. Throws Error where the file or the stream does not take it.
  void save_to(const std::string& path);
  void save_to(std::ostream& stream);
  /// The function returns the bytes that it took.
  void save_to(const std::function<std::size_t(const void*, std::size_t)>& writer);
  /// What has been written so far.
  const nn::TensorFile& content() const { return file_; }

 private:
  void write_boolean(const std::string& key, bool value);
  void write_integer(const std::string& key, std::int64_t value);
  void write_real(const std::string& key, double value);
  void put(const std::string& key, std::string text);

  nn::TensorFile file_;
};

class TENON_API InputArchive {
 public:
  /// Reads what save_to() wrote, to `device` where one is given. Throws Error for what is not an archive or ends early.
  void load_from(const std::string& path, std::optional<Device> device = std::nullopt);
  void load_from(std::istream& stream, std::optional<Device> device = std::nullopt);
  void load_from(const char* data, std::size_t size, std::optional<Device> device = std::nullopt);
  /// read(position, buffer, bytes) returns the bytes read; size() is the whole.
  void load_from(const std::function<std::size_t(std::uint64_t, void*, std::size_t)>& read,
                 const std::function<std::size_t()>& size, std::optional<Device> device = std::nullopt);
  void load_from(nn::TensorFile file);
  /// As load_from(), but what is read is copied out of the file: into a defined tensor that has its sizes and dtype in
  /// place, otherwise into new memory on the tensor's device (`device` for an undefined one), for the purpose in force
  /// then. So the memory of what goes on is that of what was never interrupted.
  void copy_from(const std::string& path, Device device);

  /// A defined tensor stays the object that it is, on its own device, and gets the archive's data, sizes and dtype,
  /// unchecked; an undefined one becomes the archive's tensor, and may be absent. Throws Error where the name of a
  /// defined one is not there.
  void read(const std::string& key, Tensor& tensor, bool is_buffer = false);
  /// As read(), but false where the name is not there.
  bool try_read(const std::string& key, Tensor& tensor, bool is_buffer = false);
  void read(const std::string& key, InputArchive& nested);
  bool try_read(const std::string& key, InputArchive& nested);
  void read(const std::string& key, IValue& value);
  bool try_read(const std::string& key, IValue& value);
  /// The boolean of that name. Throws Error where there is none, or where it is of another kind.
  bool read_boolean(const std::string& key) const;
  /// The integer of that name. Throws Error where there is none, or where it is of another kind.
  std::int64_t read_integer(const std::string& key) const;
  /// The number of that name. Throws Error where there is none, or where it is of another kind.
  double read_real(const std::string& key) const;
  /// The string of that name. Throws Error where there is none, or where it is of another kind.
  std::string read_text(const std::string& key) const;
  /// The text that stands for the value or archive of that name in the file ("i:7"); nothing where there is none, and
  /// for tensors.
  std::optional<std::string> try_read_raw(const std::string& key) const;
  /// Names at this level.
  std::vector<std::string> keys() const;
  /// The name in the whole file: "0.weight".
  std::string full_name(const std::string& key) const { return prefix_.empty() ? key : prefix_ + "." + key; }

 private:
  std::string raw(const std::string& key, char kind) const;

  nn::TensorFile file_;              ///< names below prefix_
  std::string prefix_;               ///< of this level in the file, for messages
  std::optional<Device> copies_to_;  ///< of copy_from(): the file's tensors are views, not to be kept
};

namespace serialize {  // libtorch's place for them
using tenon::InputArchive;
using tenon::OutputArchive;
}  // namespace serialize

}  // namespace tenon
