//===- Json.cpp - JSON that is written ------------------------------------===//
#include "core/Json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace ds {

Json::Json(double value) : text_(nlohmann::json(value).dump()) {}

Json::Json(std::string_view value)
    : text_(nlohmann::json(value).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)) {}

Json::Json(std::initializer_list<Json> items) {
  const bool isObject = std::all_of(items.begin(), items.end(), [](const Json &item) {
    return item.kind_ == Kind::Array && item.items_.size() == 2 && item.items_[0].isString();
  });
  kind_ = isObject ? Kind::Object : Kind::Array;
  for (const Json &item : items) {
    if (isObject)
      keys_.push_back(item.items_[0].text_);
    items_.push_back(isObject ? item.items_[1] : item);
  }
}

Json Json::object() {
  Json result;
  result.kind_ = Kind::Object;
  return result;
}

Json &Json::operator[](std::string_view key) {
  kind_ = Kind::Object;
  std::string written = std::move(Json(key).text_);
  const auto found = std::find(keys_.begin(), keys_.end(), written);
  if (found != keys_.end())
    return items_[size_t(found - keys_.begin())];
  keys_.push_back(std::move(written));
  return items_.emplace_back();
}

void Json::push_back(Json item) {
  kind_ = Kind::Array;
  items_.push_back(std::move(item));
}

void Json::append(const Json &object) {
  kind_ = Kind::Object;
  keys_.insert(keys_.end(), object.keys_.begin(), object.keys_.end());
  items_.insert(items_.end(), object.items_.begin(), object.items_.end());
}

std::string Json::dump(int indent) const {
  std::string out;
  write(out, indent, 0);
  return out;
}

void Json::write(std::string &out, int indent, int depth) const {
  if (kind_ == Kind::Scalar) {
    out += text_;
    return;
  }
  const auto newLine = [&](int level) {
    if (indent >= 0)
      out.append(1, '\n').append(size_t(indent * level), ' ');
  };
  out += kind_ == Kind::Object ? '{' : '[';
  for (size_t i = 0; i < items_.size(); ++i) {
    if (i > 0)
      out += ',';
    newLine(depth + 1);
    if (kind_ == Kind::Object)
      out.append(keys_[i]).append(indent >= 0 ? ": " : ":");
    items_[i].write(out, indent, depth + 1);
  }
  if (!items_.empty())
    newLine(depth);
  out += kind_ == Kind::Object ? '}' : ']';
}

} // namespace ds
