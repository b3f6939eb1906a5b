//===- SafetensorsHeader.cpp - the JSON part of a safetensors file --------===//
#include "runtime/data/SafetensorsHeader.h"

#include "core/Error.h"
#include "core/Shape.h"
#include "core/WeightNames.h"
#include "runtime/data/SafetensorsFile.h"

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ds::runtime {
namespace {

/// Takes the parser's events; a tree of the values would merge double keys, and cost memory.
///   depth 1: entry names   depth 2: fields of an entry or of __metadata__   depth 3: numbers of shape or data_offsets
class Events final : public nlohmann::json_sax<nlohmann::json> {
public:
  SafetensorsHeader header;

  bool start_object(size_t) override {
    if (depth_ >= 2)
      throw Error(entry_ + ": an object stands where a value belongs");
    if (++depth_ == 2) {
      fields_.clear();
      tensor_ = {};
      offsets_.clear();
    }
    return true;
  }

  bool end_object() override {
    if (depth_-- == 2 && !isMetadata())
      finishEntry();
    return true;
  }

  bool key(string_t &name) override {
    if (depth_ == 1) {
      entry_ = name;
      if (!entries_.insert(name).second)
        throw Error("the name " + name + " stands twice");
      return true;
    }
    field_ = name;
    if (!fields_.insert(name).second)
      throw Error(entry_ + ": the field " + name + " stands twice");
    if (!isMetadata() && name != "dtype" && name != "shape" && name != "data_offsets")
      throw Error(entry_ + ": there is no field " + name + " in the format");
    return true;
  }

  bool start_array(size_t) override {
    if (depth_ != 2 || isMetadata() || field_ == "dtype")
      throw Error(entry_ + ": a list stands where none belongs");
    ++depth_;
    return true;
  }
  bool end_array() override {
    --depth_;
    return true;
  }

  bool string(string_t &text) override {
    if (depth_ == 2 && isMetadata())
      header.metadata.emplace(field_, text);
    else if (depth_ == 2 && field_ == "dtype")
      tensor_.dtype = text;
    else
      misplaced();
    return true;
  }

  bool number_unsigned(number_unsigned_t number) override {
    if (depth_ != 3)
      misplaced();
    if (number > uint64_t(INT64_MAX))
      throw Error(entry_ + ": the number " + std::to_string(number) + " is beyond 2^63 - 1");
    if (field_ == "shape" && tensor_.shape.size() < 64)
      tensor_.shape.push_back(int64_t(number));
    else if (field_ == "data_offsets" && offsets_.size() < 3)
      offsets_.push_back(number);
    else
      throw Error(entry_ + ": its " + field_ + " has too many numbers");
    return true;
  }

  bool number_integer(number_integer_t) override { misplaced(); }
  bool number_float(number_float_t, const string_t &) override { misplaced(); }
  bool null() override { misplaced(); }
  bool boolean(bool) override { misplaced(); }
  bool binary(binary_t &) override { misplaced(); }
  bool parse_error(size_t position, const std::string &, const nlohmann::detail::exception &) override {
    throw Error("its header is no JSON at byte " + std::to_string(position));
  }

private:
  bool isMetadata() const { return entry_ == safetensorsNotes; }

  [[noreturn]] void misplaced() const {
    throw Error((entry_.empty() ? "its header" : entry_) + ": a value of the wrong kind stands in its " +
                (field_.empty() ? "entry" : field_));
  }

  void finishEntry() {
    const uint64_t elementBytes = safetensorsElementBytes(tensor_.dtype);
    if (elementBytes == 0)
      throw Error(entry_ + ": its dtype '" + tensor_.dtype + "' is missing or not known");
    if (!fields_.contains("shape") || offsets_.size() != 2 || offsets_[0] > offsets_[1])
      throw Error(entry_ + ": its shape is missing, or its data_offsets are not a begin and an end");
    const auto elements = checkedElementCount(tensor_.shape);
    tensor_.offset = offsets_[0];
    tensor_.bytes = offsets_[1] - offsets_[0];
    if (!elements || uint64_t(*elements) != tensor_.bytes / elementBytes || tensor_.bytes % elementBytes != 0)
      throw Error(entry_ + ": its data_offsets hold " + std::to_string(tensor_.bytes) + " bytes, which is not shape " +
                  toString(tensor_.shape) + " of " + tensor_.dtype);
    header.tensors.emplace(entry_, std::move(tensor_));
  }

  int depth_ = 0;
  std::string entry_, field_;
  std::set<std::string> entries_, fields_;
  SafetensorsFile::Tensor tensor_;
  std::vector<uint64_t> offsets_;
};

} // namespace

SafetensorsHeader parseSafetensorsHeader(std::string_view json) {
  const size_t first = json.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || json[first] != '{')
    throw Error("its header is not a JSON object");
  Events events;
  nlohmann::json::sax_parse(json.begin(), json.end(), &events);
  return std::move(events.header);
}

} // namespace ds::runtime
