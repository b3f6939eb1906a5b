//===- ManifestFields.h - values of a JSON object, by type ----------------===//
#pragma once

#include "core/Error.h"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace ds::runtime {

/// A value of a manifest and where it stands: "variables[3].pieces". What is missing or of another type is refused by
/// ds::Error that names the place.
class ManifestFields {
public:
  using Json = nlohmann::ordered_json;

  ManifestFields(const Json &json, std::string place) : json_(json), place_(std::move(place)) {}

  bool has(const char *key) const { return json_.contains(key); }
  std::string text(const char *key) const {
    return get(key, "a text", [](const Json &json) { return json.is_string(); }).get<std::string>();
  }
  uint64_t number(const char *key) const { return get(key, "a whole number", isNumber).get<uint64_t>(); }
  bool flag(const char *key) const {
    return get(key, "true or false", [](const Json &json) { return json.is_boolean(); }).get<bool>();
  }
  std::string json(const char *key) const {
    return get(key, "a value", [](const Json &) { return true; }).dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  std::vector<uint64_t> numbers(const char *key) const {
    return get(key, "a list of whole numbers", [](const Json &json) { return isListOf(json, isNumber); });
  }
  std::vector<std::string> texts(const char *key) const {
    return get(key, "a list of texts", [](const Json &json) {
      return isListOf(json, [](const Json &element) { return element.is_string(); });
    });
  }
  ManifestFields object(const char *key) const {
    return {get(key, "an object", [](const Json &json) { return json.is_object(); }), placeOf(key)};
  }
  ManifestFields list(const char *key) const {
    return {get(key, "a list", [](const Json &json) { return json.is_array(); }), placeOf(key)};
  }
  /// Of a list, which may hold lists or objects.
  std::vector<ManifestFields> elements() const {
    std::vector<ManifestFields> elements;
    for (size_t i = 0; i < json_.size(); ++i) {
      const std::string place = place_ + "[" + std::to_string(i) + "]";
      if (!json_.is_array() || !json_[i].is_structured())
        throw Error(place + " is neither an object nor a list");
      elements.emplace_back(json_[i], place);
    }
    return elements;
  }

  [[noreturn]] void refuse(const char *key, const std::string &why) const { throw Error(placeOf(key) + " " + why); }

private:
  static bool isNumber(const Json &json) { return json.is_number_unsigned(); }
  template <typename Is> static bool isListOf(const Json &json, const Is &is) {
    bool all = json.is_array();
    for (size_t i = 0; all && i < json.size(); ++i)
      all = is(json[i]);
    return all;
  }
  std::string placeOf(const char *key) const { return place_.empty() ? key : place_ + "." + key; }
  template <typename Is> const Json &get(const char *key, const char *what, const Is &is) const {
    const auto found = json_.is_object() ? json_.find(key) : json_.end();
    if (found == json_.end())
      refuse(key, "is missing");
    if (!is(*found))
      refuse(key, std::string("is not ") + what);
    return *found;
  }

  const Json &json_;
  const std::string place_;
};

} // namespace ds::runtime
