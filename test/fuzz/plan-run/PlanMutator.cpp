//===- PlanMutator.cpp - one change to a message --------------------------===//
#include "test/fuzz/plan-run/PlanMutator.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <google/protobuf/descriptor.h>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

namespace ds::fuzz {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr int single = -1; // in place of an index into a list

uint64_t numberOf(const Message &message, const FieldDescriptor *field, int index) {
  const Reflection &r = *message.GetReflection();
  const bool one = index == single;
  switch (field->cpp_type()) {
  case FieldDescriptor::CPPTYPE_INT64:
    return uint64_t(one ? r.GetInt64(message, field) : r.GetRepeatedInt64(message, field, index));
  case FieldDescriptor::CPPTYPE_UINT32:
    return one ? r.GetUInt32(message, field) : r.GetRepeatedUInt32(message, field, index);
  case FieldDescriptor::CPPTYPE_UINT64:
    return one ? r.GetUInt64(message, field) : r.GetRepeatedUInt64(message, field, index);
  case FieldDescriptor::CPPTYPE_ENUM:
    return uint64_t(one ? r.GetEnumValue(message, field) : r.GetRepeatedEnumValue(message, field, index));
  case FieldDescriptor::CPPTYPE_BOOL:
    return one ? r.GetBool(message, field) : r.GetRepeatedBool(message, field, index);
  case FieldDescriptor::CPPTYPE_DOUBLE:
    return std::bit_cast<uint64_t>(one ? r.GetDouble(message, field) : r.GetRepeatedDouble(message, field, index));
  default: // plan.proto has no others
    return 0;
  }
}

void setNumber(Message &message, const FieldDescriptor *field, int index, uint64_t to) {
  const Reflection &r = *message.GetReflection();
  const bool one = index == single;
  switch (field->cpp_type()) {
  case FieldDescriptor::CPPTYPE_INT64:
    return one ? r.SetInt64(&message, field, int64_t(to)) : r.SetRepeatedInt64(&message, field, index, int64_t(to));
  case FieldDescriptor::CPPTYPE_UINT32:
    return one ? r.SetUInt32(&message, field, uint32_t(to)) : r.SetRepeatedUInt32(&message, field, index, uint32_t(to));
  case FieldDescriptor::CPPTYPE_UINT64:
    return one ? r.SetUInt64(&message, field, to) : r.SetRepeatedUInt64(&message, field, index, to);
  case FieldDescriptor::CPPTYPE_ENUM:
    return one ? r.SetEnumValue(&message, field, int(to)) : r.SetRepeatedEnumValue(&message, field, index, int(to));
  case FieldDescriptor::CPPTYPE_BOOL:
    return one ? r.SetBool(&message, field, to % 2) : r.SetRepeatedBool(&message, field, index, to % 2);
  case FieldDescriptor::CPPTYPE_DOUBLE:
    return one ? r.SetDouble(&message, field, std::bit_cast<double>(to))
               : r.SetRepeatedDouble(&message, field, index, std::bit_cast<double>(to));
  default:
    return;
  }
}

std::string textOf(const Message &message, const FieldDescriptor *field, int index) {
  const Reflection &r = *message.GetReflection();
  return index == single ? r.GetString(message, field) : r.GetRepeatedString(message, field, index);
}

/// The message and all within it.
void collect(Message &message, std::vector<Message *> &all) {
  all.push_back(&message);
  std::vector<const FieldDescriptor *> fields;
  const Reflection &r = *message.GetReflection();
  r.ListFields(message, &fields);
  for (const FieldDescriptor *field : fields) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE)
      continue;
    for (int i = 0; field->is_repeated() && i < r.FieldSize(message, field); ++i)
      collect(*r.MutableRepeatedMessage(&message, field, i), all);
    if (!field->is_repeated())
      collect(*r.MutableMessage(&message, field), all);
  }
}

class Change {
public:
  Change(Message &root, std::minstd_rand &random) : random_(random) { collect(root, all_); }

  void make() {
    Message &message = *all_[below(all_.size())];
    const FieldDescriptor *field =
        message.GetDescriptor()->field(int(below(size_t(message.GetDescriptor()->field_count()))));
    if (!field->is_repeated())
      return changeValue(message, field, single);
    const Reflection &r = *message.GetReflection();
    const int size = r.FieldSize(message, field);
    if (size == 0 || below(4) == 0)
      return addElement(message, field);
    const int index = int(below(size_t(size)));
    switch (below(3)) {
    case 0:
      r.SwapElements(&message, field, index, size - 1);
      return r.RemoveLast(&message, field);
    case 1:
      return r.SwapElements(&message, field, index, int(below(size_t(size))));
    default:
      return changeValue(message, field, index);
    }
  }

private:
  size_t below(size_t count) { return random_() % count; }

  /// A message of the same kind where the field says something, and which element of it; nullptr: there is none.
  const Message *donor(const FieldDescriptor *field, int &index) {
    std::vector<const Message *> donors;
    for (const Message *message : all_)
      if (message->GetDescriptor() == field->containing_type() &&
          (field->is_repeated() ? message->GetReflection()->FieldSize(*message, field) > 0
                                : message->GetReflection()->HasField(*message, field)))
        donors.push_back(message);
    if (donors.empty())
      return nullptr;
    const Message *chosen = donors[below(donors.size())];
    index = field->is_repeated() ? int(below(size_t(chosen->GetReflection()->FieldSize(*chosen, field)))) : single;
    return chosen;
  }

  void changeValue(Message &message, const FieldDescriptor *field, int index) {
    int from = single;
    const Message *source = donor(field, from);
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE)
      return changePart(message, field, index, source, from);
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING)
      return source == nullptr ? void() : changeText(message, field, index, textOf(*source, field, from));
    const uint64_t before = numberOf(message, field, index);
    const uint64_t others[] = {source == nullptr ? 0 : numberOf(*source, field, from),
                               before + 1,
                               before - 1,
                               before * 2,
                               before / 2,
                               before ^ (uint64_t(1) << below(64)),
                               below(16)};
    setNumber(message, field, index, others[below(2) == 0 ? 0 : below(std::size(others))]);
  }

  void changeText(Message &message, const FieldDescriptor *field, int index, const std::string &text) {
    const Reflection &r = *message.GetReflection();
    index == single ? r.SetString(&message, field, text) : r.SetRepeatedString(&message, field, index, text);
  }

  void changePart(Message &message, const FieldDescriptor *field, int index, const Message *source, int from) {
    const Reflection &r = *message.GetReflection();
    if (index == single && below(4) == 0)
      return r.ClearField(&message, field);
    if (source == nullptr)
      return;
    Message *target =
        index == single ? r.MutableMessage(&message, field) : r.MutableRepeatedMessage(&message, field, index);
    copyPart(*target, *source, field, from);
  }

  static void copyPart(Message &target, const Message &source, const FieldDescriptor *field, int from) {
    const Reflection &r = *source.GetReflection();
    const Message &part = from == single ? r.GetMessage(source, field) : r.GetRepeatedMessage(source, field, from);
    const std::unique_ptr<Message> copy(part.New()); // one may lie within the other
    copy->CopyFrom(part);
    target.CopyFrom(*copy);
  }

  void addElement(Message &message, const FieldDescriptor *field) {
    int from = single;
    const Message *source = donor(field, from);
    if (source == nullptr)
      return;
    const Reflection &r = *message.GetReflection();
    switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return copyPart(*r.AddMessage(&message, field), *source, field, from);
    case FieldDescriptor::CPPTYPE_STRING:
      return r.AddString(&message, field, textOf(*source, field, from));
    default:
      return addNumber(message, field, numberOf(*source, field, from));
    }
  }

  static void addNumber(Message &message, const FieldDescriptor *field, uint64_t number) {
    const Reflection &r = *message.GetReflection();
    switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT64:
      return r.AddInt64(&message, field, int64_t(number));
    case FieldDescriptor::CPPTYPE_UINT32:
      return r.AddUInt32(&message, field, uint32_t(number));
    case FieldDescriptor::CPPTYPE_UINT64:
      return r.AddUInt64(&message, field, number);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return r.AddDouble(&message, field, std::bit_cast<double>(number));
    default:
      return;
    }
  }

  std::vector<Message *> all_;
  std::minstd_rand &random_;
};

} // namespace

void mutate(Message &message, std::minstd_rand &random) { Change(message, random).make(); }

} // namespace ds::fuzz
