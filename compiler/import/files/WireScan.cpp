//===- WireScan.cpp - a model's structure without its weights ---------------===//
#include "compiler/import/files/WireScan.h"

#include "compiler/import/files/Failure.h"

#include <climits>

namespace ds::import {
namespace {

/// One field of a message: `whole` with its tag, `payload` without tag and length.
struct Field {
  uint32_t number = 0, wireType = 0;
  std::span<const char> whole, payload;
};
enum WireType : uint32_t { Varint = 0, Fixed64 = 1, LengthDelimited = 2, Fixed32 = 5 };

class FieldReader {
public:
  FieldReader(std::span<const char> bytes, const char *fileBegin, const std::string &name)
      : bytes_(bytes), fileBegin_(fileBegin), name_(name) {}

  /// Moves to the next field; false at the end of the message.
  bool next(Field &field) {
    if (at_ == bytes_.size())
      return false;
    const size_t begin = at_;
    const uint64_t tag = varint();
    field.number = uint32_t(tag >> 3);
    field.wireType = uint32_t(tag & 7);
    if ((tag >> 3) == 0 || (tag >> 3) > 0x1fffffff)
      malformed();
    size_t payload = at_;
    if (field.wireType == Varint) {
      (void)varint();
    } else if (field.wireType == Fixed64) {
      skip(8);
    } else if (field.wireType == Fixed32) {
      skip(4);
    } else if (field.wireType == LengthDelimited) {
      const uint64_t length = varint();
      payload = at_;
      skip(length);
    } else {
      malformed(); // groups; ONNX has none
    }
    field.whole = bytes_.subspan(begin, at_ - begin);
    field.payload = bytes_.subspan(payload, at_ - payload);
    return true;
  }

private:
  [[noreturn]] void malformed() const {
    const auto offset = size_t(bytes_.data() + at_ - fileBegin_);
    throw Failure(name_ + " is truncated or is no ONNX model: it cannot be read on from byte " +
                  std::to_string(offset));
  }
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      if (at_ == bytes_.size())
        malformed();
      const auto byte = static_cast<unsigned char>(bytes_[at_++]);
      if (shift < 64)
        value |= uint64_t(byte & 0x7f) << shift;
      if (!(byte & 0x80))
        return value;
    }
    malformed();
  }
  void skip(uint64_t length) {
    if (length > bytes_.size() - at_)
      malformed();
    at_ += size_t(length);
  }

  std::span<const char> bytes_;
  const char *fileBegin_;
  const std::string &name_;
  size_t at_ = 0;
};

class Scanner {
public:
  Scanner(std::span<const char> bytes, uint64_t maxBytes, const std::string &name)
      : bytes_(bytes), maxBytes_(std::min<uint64_t>(maxBytes, INT_MAX)), name_(name) {}

  ScannedModel scan() {
    FieldReader reader(bytes_, bytes_.data(), name_);
    std::string model, graph;
    bool hasGraph = false;
    for (Field field; reader.next(field);) {
      if (field.number == 7 && field.wireType == LengthDelimited) {
        hasGraph = true; // a graph that comes in parts is the parts' concatenation
        scanGraph(field.payload, graph);
      } else {
        keep(field.whole, model);
      }
    }
    parse(result_.proto, model);
    if (!hasGraph)
      throw Failure(name_ + " holds no graph; an ONNX model has one in field 7");
    onnx::GraphProto rest;
    parse(rest, graph);
    rest.mutable_initializer()->Swap(&initializers_);
    *result_.proto.mutable_graph() = std::move(rest);
    return std::move(result_);
  }

private:
  void keep(std::span<const char> field, std::string &to) {
    if (field.size() > maxBytes_ - kept_)
      throw Failure(name_ + ": the structure of the model, weights aside, passes the limit of " +
                    std::to_string(maxBytes_) + " bytes; weights belong into initializers");
    kept_ += field.size();
    to.append(field.data(), field.size());
  }

  void parse(google::protobuf::Message &message, const std::string &from) {
    if (!message.ParsePartialFromString(from))
      throw Failure(name_ + " is truncated or is no ONNX model: protobuf cannot parse its " +
                    message.GetTypeName().substr(8));
  }

  void scanGraph(std::span<const char> bytes, std::string &rest) {
    FieldReader reader(bytes, bytes_.data(), name_);
    for (Field field; reader.next(field);) {
      if (field.number == 5 && field.wireType == LengthDelimited)
        scanInitializer(field.payload);
      else if (field.number != 1 || field.wireType != LengthDelimited || !scanConstant(field.payload))
        keep(field.whole, rest);
    }
  }

  /// Whether a node is a Constant of many floats, which becomes an initializer (Node.2, 4, 5 and 7; Attribute.1 and 5).
  bool scanConstant(std::span<const char> bytes) {
    if (bytes.size() < leastConstant)
      return false;
    std::string output, op, domain, attribute;
    std::span<const char> tensor;
    int outputs = 0, attributes = 0;
    FieldReader reader(bytes, bytes_.data(), name_);
    const auto text = [](const Field &field) { return std::string(field.payload.begin(), field.payload.end()); };
    for (Field field; reader.next(field);) {
      if (field.number == 2)
        output = text(field), ++outputs;
      else if (field.number == 4)
        op = text(field);
      else if (field.number == 7)
        domain = text(field);
      else if (field.number == 5 && ++attributes == 1 && field.wireType == LengthDelimited) {
        FieldReader inner(field.payload, bytes_.data(), name_);
        for (Field part; inner.next(part);)
          if (part.number == 1)
            attribute = text(part);
          else if (part.number == 5)
            tensor = part.payload;
      }
    }
    if (op != "Constant" || !domain.empty() || outputs != 1 || attributes != 1 || attribute != "value" ||
        tensor.size() < leastConstant || !isFloats(tensor))
      return false;
    scanInitializer(tensor);
    initializers_[initializers_.size() - 1].set_name(output);
    result_.constants.insert(output);
    return true;
  }

  bool isFloats(std::span<const char> tensor) const {
    FieldReader reader(tensor, bytes_.data(), name_);
    for (Field field; reader.next(field);)
      if (field.number == 2 && field.wireType == Varint)
        return field.whole.size() == 2 && (field.whole[1] == 1 || field.whole[1] == 11);
    return false;
  }

  /// Leaves out raw_data, or float_data or double_data where these come as one packed run.
  void scanInitializer(std::span<const char> bytes) {
    std::vector<Field> fields;
    FieldReader reader(bytes, bytes_.data(), name_);
    size_t dataFields = 0;
    for (Field field; reader.next(field);) {
      fields.push_back(field);
      dataFields += isData(field);
    }
    std::string rest;
    std::optional<InlineData> data;
    for (const Field &field : fields) {
      if (isContiguousData(field) && dataFields == 1)
        data = {uint64_t(field.payload.data() - bytes_.data()), field.payload.size(), int(field.number)};
      else
        keep(field.whole, rest);
    }
    parse(*initializers_.Add(), rest);
    result_.data.push_back(data);
  }

  static constexpr size_t leastConstant = 4096; // bytes

  static bool isData(const Field &field) {
    return (field.number >= 4 && field.number <= 7) || (field.number >= 9 && field.number <= 11);
  }
  static bool isContiguousData(const Field &field) {
    return field.wireType == LengthDelimited && (field.number == 9 || field.number == 4 || field.number == 10);
  }

  std::span<const char> bytes_;
  uint64_t maxBytes_, kept_ = 0; // bytes
  const std::string &name_;
  google::protobuf::RepeatedPtrField<onnx::TensorProto> initializers_;
  ScannedModel result_;
};

} // namespace

ScannedModel scanModel(std::span<const char> bytes, uint64_t maxBytes, const std::string &name) {
  return Scanner(bytes, maxBytes, name).scan();
}

} // namespace ds::import
