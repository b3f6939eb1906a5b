//===- FieldEdits.cpp - edits of any field of any message of a plan -------===//
#include "test/mutation/FieldEdits.h"

#include "runtime/plan/plan.pb.h"
#include "test/mutation/Edit.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace ds::mutation {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

/// By message type: all messages of it in the plan, in order.
using Messages = std::map<std::string, std::vector<Message *>>;

void collect(Message &message, Messages &messages) {
  messages[message.GetDescriptor()->name()].push_back(&message);
  const Reflection &reflection = *message.GetReflection();
  std::vector<const FieldDescriptor *> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor *field : fields) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE)
      continue;
    if (!field->is_repeated())
      collect(*reflection.MutableMessage(&message, field), messages);
    else
      for (int i = 0; i < reflection.FieldSize(message, field); ++i)
        collect(*reflection.MutableRepeatedMessage(&message, field, i), messages);
  }
}

std::string nameOf(const FieldDescriptor &field) { return field.containing_type()->name() + "." + field.name(); }

void collectFields(const Descriptor &type, std::map<std::string, const FieldDescriptor *> &fields) {
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor *field = type.field(i);
    if (!fields.emplace(nameOf(*field), field).second)
      continue;
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE)
      collectFields(*field->message_type(), fields);
  }
}

/// A number, truth value, text or enumerator of a field that is not repeated, one step away.
std::string step(Message &message, const FieldDescriptor *field, Random &random) {
  const Reflection &reflection = *message.GetReflection();
  const bool up = random.below(2) == 0;
  const auto moved = [up](auto value) { return up ? value + 1 : value - 1; };
  switch (field->cpp_type()) {
  case FieldDescriptor::CPPTYPE_INT32:
    reflection.SetInt32(&message, field, moved(reflection.GetInt32(message, field)));
    break;
  case FieldDescriptor::CPPTYPE_INT64:
    reflection.SetInt64(&message, field, moved(reflection.GetInt64(message, field)));
    break;
  case FieldDescriptor::CPPTYPE_UINT32:
    reflection.SetUInt32(&message, field, moved(reflection.GetUInt32(message, field)));
    break;
  case FieldDescriptor::CPPTYPE_UINT64:
    reflection.SetUInt64(&message, field, moved(reflection.GetUInt64(message, field)));
    break;
  case FieldDescriptor::CPPTYPE_DOUBLE:
    reflection.SetDouble(&message, field, reflection.GetDouble(message, field) * 1.5 + (up ? 0.25 : 0));
    return "another number";
  case FieldDescriptor::CPPTYPE_BOOL:
    reflection.SetBool(&message, field, !reflection.GetBool(message, field));
    return "the other truth value";
  case FieldDescriptor::CPPTYPE_ENUM: {
    const int value = reflection.GetEnumValue(message, field), count = field->enum_type()->value_count();
    reflection.SetEnumValue(&message, field, (value + 1 + int(random.below(size_t(count - 1)))) % count);
    return "another enumerator";
  }
  case FieldDescriptor::CPPTYPE_STRING:
    reflection.SetString(&message, field, reflection.GetString(message, field) + "x");
    return "a longer text";
  default:
    return "";
  }
  return up ? "+1" : "-1";
}

/// One item of a repeated field left out, doubled, or exchanged with another.
std::string rearrange(Message &message, const FieldDescriptor *field, Random &random) {
  const Reflection &reflection = *message.GetReflection();
  const int size = reflection.FieldSize(message, field);
  if (size == 0)
    return "";
  const int item = int(random.below(size_t(size))), last = size - 1;
  const auto moveToEnd = [&] {
    for (int i = item; i < last; ++i)
      reflection.SwapElements(&message, field, i, i + 1);
  };
  switch (random.below(size > 1 ? 3 : 2)) {
  case 0:
    moveToEnd();
    reflection.RemoveLast(&message, field);
    return "item " + std::to_string(item) + " left out";
  case 1: { // by way of a copy of the message, since types differ
    const std::unique_ptr<Message> copy(message.New());
    copy->CopyFrom(message);
    moveToEnd();
    const std::unique_ptr<Message> one(message.New());
    one->CopyFrom(message);
    for (int i = 0; i < last; ++i)
      reflection.SwapElements(one.get(), field, i, i + 1);
    std::vector<const FieldDescriptor *> others;
    reflection.ListFields(*one, &others);
    for (const FieldDescriptor *other : others)
      if (other != field)
        reflection.ClearField(one.get(), other);
    while (reflection.FieldSize(*one, field) > 1)
      reflection.RemoveLast(one.get(), field);
    message.CopyFrom(*copy);
    message.MergeFrom(*one);
    return "an item doubled";
  }
  default:
    reflection.SwapElements(&message, field, item, (item + 1 + int(random.below(size_t(last)))) % size);
    return "two items exchanged";
  }
}

/// The field of another message of the type.
std::string copyFromAnother(Message &message, const FieldDescriptor *field, const std::vector<Message *> &messages,
                            Random &random) {
  const Message *other = messages[random.below(messages.size())];
  if (other == &message)
    return "";
  const Reflection &reflection = *message.GetReflection();
  const std::unique_ptr<Message> mine(message.New()), theirs(message.New());
  mine->CopyFrom(message);
  theirs->CopyFrom(*other);
  reflection.SwapFields(mine.get(), theirs.get(), {field});
  message.CopyFrom(*mine);
  return "that of another " + message.GetDescriptor()->name();
}

std::string change(Message &message, const FieldDescriptor *field, const std::vector<Message *> &messages,
                   Random &random) {
  const Reflection &reflection = *message.GetReflection();
  switch (random.below(4)) {
  case 0:
    reflection.ClearField(&message, field);
    return "cleared";
  case 1:
    return copyFromAnother(message, field, messages, random);
  default:
    return field->is_repeated() ? rearrange(message, field, random) : step(message, field, random);
  }
}

} // namespace

std::vector<std::string> allFields() {
  std::map<std::string, const FieldDescriptor *> fields;
  collectFields(*proto::Plan::descriptor(), fields);
  std::vector<std::string> names;
  for (const auto &[name, field] : fields)
    names.push_back(name);
  return names;
}

FieldEdit editField(proto::Plan &plan, const std::string &field, Random &random) {
  std::map<std::string, const FieldDescriptor *> fields;
  collectFields(*proto::Plan::descriptor(), fields);
  const FieldDescriptor *descriptor = fields.at(field);
  Messages messages;
  collect(plan, messages);
  const std::vector<Message *> &places = messages[descriptor->containing_type()->name()];
  for (int attempt = 0; attempt < 20 && !places.empty(); ++attempt) {
    const std::string before = plan.SerializeAsString();
    Message &message = *places[random.below(places.size())];
    const std::string what = change(message, descriptor, places, random);
    if (!what.empty() && plan.SerializeAsString() != before)
      return {field, what};
    if (plan.SerializeAsString() != before) // a change without a name: none of ours
      break;
  }
  return {field, ""};
}

FieldEdit editField(proto::Plan &plan, Random &random) {
  const std::vector<std::string> fields = allFields();
  while (true)
    if (FieldEdit edit = editField(plan, fields[random.below(fields.size())], random); !edit.what.empty())
      return edit;
}

} // namespace ds::mutation
