//===- Places.cpp - where a defect lies, and whether a refusal says so -----===//
#include "test/mutation/Places.h"

#include "test/mutation/Edit.h"

#include <algorithm>
#include <cctype>
#include <google/protobuf/util/message_differencer.h>
#include <regex>
#include <string_view>

namespace ds::mutation {

namespace {

/// Which elements of two lists have no counterpart, by a longest common subsequence.
struct Unmatched {
  std::vector<size_t> left, right;
};

Unmatched unmatched(const std::vector<std::string> &left, const std::vector<std::string> &right) {
  std::vector<std::vector<size_t>> common(left.size() + 1, std::vector<size_t>(right.size() + 1, 0));
  for (size_t i = left.size(); i-- > 0;)
    for (size_t k = right.size(); k-- > 0;)
      common[i][k] = left[i] == right[k] ? common[i + 1][k + 1] + 1 : std::max(common[i + 1][k], common[i][k + 1]);
  Unmatched result;
  size_t i = 0, k = 0;
  while (i < left.size() || k < right.size()) {
    if (i < left.size() && k < right.size() && left[i] == right[k])
      ++i, ++k;
    else if (k == right.size() || (i < left.size() && common[i + 1][k] >= common[i][k + 1]))
      result.left.push_back(i++);
    else
      result.right.push_back(k++);
  }
  return result;
}

template <typename Messages> std::vector<std::string> serialized(const Messages &messages) {
  std::vector<std::string> texts;
  for (const auto &message : messages)
    texts.push_back(message.SerializeAsString());
  return texts;
}

/// As errors write it: "of x", "(x)", "x,".
bool hasWord(const std::string &text, const std::string &word) {
  constexpr std::string_view within = "_/.:";
  const auto continues = [&](size_t at) {
    return at < text.size() &&
           (std::isalnum(static_cast<unsigned char>(text[at])) || text[at] == '_' || text[at] == '/');
  };
  for (size_t at = text.find(word); !word.empty() && at != std::string::npos; at = text.find(word, at + 1))
    if ((at == 0 || (!continues(at - 1) && within.find(text[at - 1]) == std::string_view::npos)) &&
        !continues(at + word.size()))
      return true;
  return false;
}

} // namespace

Places::Places(const proto::Plan &whole, const proto::Plan &broken) {
  for (int r = 0; r < broken.roles_size(); ++r) // a role that was split has the other half at its end
    addRole(broken, whole.roles(std::min(r, whole.roles_size() - 1)), broken.roles(r));
  addVariables(whole, broken);
  for (const proto::Role &role : broken.roles())
    addUsers(role);
  addFields(whole, broken);
}

void Places::addRole(const proto::Plan &plan, const proto::Role &whole, const proto::Role &broken) {
  for (int r = 0; r < broken.routines_size(); ++r)
    addCommands(plan, broken, r < whole.routines_size() ? &whole.routines(r) : nullptr, broken.routines(r));
  addBuffers(whole, broken);
  addPrograms(whole, broken);
}

void Places::addCommands(const proto::Plan &plan, const proto::Role &role, const proto::Routine *whole,
                         const proto::Routine &broken) {
  const auto before = whole ? serialized(whole->commands()) : std::vector<std::string>{};
  const Unmatched different = unmatched(before, serialized(broken.commands()));
  std::set<uint32_t> events;
  const auto add = [&](const proto::Command &command) {
    for (const proto::Operand *operand : operandsOf(command)) {
      buffers_.insert(operand->buffer());
      if (int(operand->buffer()) < role.buffers_size() && role.buffers(int(operand->buffer())).has_variable())
        names_.insert(role.buffers(int(operand->buffer())).name());
    }
    events.insert(command.signals().begin(), command.signals().end());
    for (const proto::Wait &wait : command.waits())
      events.insert(wait.event());
    if (command.has_send())
      names_.insert(plan.channels(int(command.send().channel())).name());
    if (command.has_receive())
      names_.insert(plan.channels(int(command.receive().channel())).name());
  };
  for (size_t i : different.left)
    add(whole->commands(int(i)));
  for (size_t i : different.right) {
    add(broken.commands(int(i)));
    commands_.emplace(broken.name(), i);
  }
  for (uint32_t event : events)
    if (event < uint32_t(role.events_size()))
      names_.insert(role.events(int(event)).name());
}

void Places::addPrograms(const proto::Role &whole, const proto::Role &broken) {
  for (int p = 0; p < std::min(whole.programs_size(), broken.programs_size()); ++p) {
    const proto::Program &before = whole.programs(p), &after = broken.programs(p);
    const Unmatched calls = unmatched(serialized(before.calls()), serialized(after.calls()));
    std::set<uint32_t> routines;
    for (size_t i : calls.left)
      routines.insert(before.calls(int(i)).routine());
    for (size_t i : calls.right)
      routines.insert(after.calls(int(i)).routine());
    for (uint32_t routine : routines) {
      names_.insert("routine " + broken.routines(int(routine)).name());
      for (const proto::Command &command : broken.routines(int(routine)).commands())
        for (const proto::Operand *operand : operandsOf(command))
          if (writes(*operand))
            buffers_.insert(operand->buffer());
    }
    const Unmatched metrics = unmatched(serialized(before.metrics()), serialized(after.metrics()));
    for (size_t i : metrics.left)
      names_.insert(before.metrics(int(i)).name());
    for (size_t i : metrics.right)
      names_.insert("metric " + after.metrics(int(i)).name());
  }
}

void Places::addVariables(const proto::Plan &whole, const proto::Plan &broken) {
  for (const proto::Role &role : broken.roles())
    for (int b = 0; b < role.buffers_size(); ++b) {
      const proto::Buffer &buffer = role.buffers(b);
      if (buffer.has_variable() && whole.variables(int(buffer.variable())).SerializeAsString() !=
                                       broken.variables(int(buffer.variable())).SerializeAsString())
        buffers_.insert(uint32_t(b));
    }
}

void Places::addBuffers(const proto::Role &whole, const proto::Role &broken) {
  const auto commandsOf = [](const proto::Role &role) {
    int count = 0;
    for (const proto::Routine &routine : role.routines())
      count += routine.commands_size();
    return count;
  };
  const bool isRenumbered = commandsOf(whole) != commandsOf(broken); // then every life names other numbers
  const auto text = [&](proto::Buffer buffer) {
    if (isRenumbered)
      buffer.clear_lives();
    return buffer.SerializeAsString();
  };
  for (int b = 0; b < broken.buffers_size(); ++b)
    if (b >= whole.buffers_size() || text(whole.buffers(b)) != text(broken.buffers(b)))
      buffers_.insert(uint32_t(b));
}

void Places::addUsers(const proto::Role &broken) {
  for (const proto::Routine &routine : broken.routines())
    for (int c = 0; c < routine.commands_size(); ++c)
      if (std::ranges::any_of(operandsOf(routine.commands(c)),
                              [&](const proto::Operand *operand) { return buffers_.contains(operand->buffer()); }))
        commands_.emplace(routine.name(), size_t(c));
}

void Places::addFields(proto::Plan whole, proto::Plan broken) {
  for (proto::Plan *plan : {&whole, &broken})
    for (proto::Role &role : *plan->mutable_roles()) { // compared above
      role.clear_buffers();
      role.clear_routines();
      role.clear_programs();
    }
  std::string report; // lines such as "modified: roles[0].arenas[0].bytes: 1024 -> 512"
  google::protobuf::util::MessageDifferencer differencer;
  differencer.ReportDifferencesToString(&report);
  differencer.Compare(whole, broken);
  static const std::regex path(R"(([a-z_]+)(\[\d+\])?(?=[.:]))");
  for (std::sregex_iterator found(report.begin(), report.end(), path), end; found != end; ++found) {
    std::string field = (*found)[1];
    if ((*found)[2].matched && field.ends_with('s'))
      field.pop_back(); // as errors say "arena 0"
    if (field != "role" && field != "bytes" && field != "added" && field != "deleted" && field != "modified")
      names_.insert(field);
  }
}

bool Places::areNamedIn(const std::string &sentence) const {
  static const std::regex command(R"(routine (?:\d+ \()?([\w:.]+)[^;\n]*?command (\d+))"), buffer(R"(buffer (\d+) \()");
  for (std::sregex_iterator found(sentence.begin(), sentence.end(), command), end; found != end; ++found)
    if (commands_.contains({(*found)[1], std::stoul((*found)[2])}))
      return true;
  for (std::sregex_iterator found(sentence.begin(), sentence.end(), buffer), end; found != end; ++found)
    if (buffers_.contains(uint32_t(std::stoul((*found)[1]))))
      return true;
  return std::ranges::any_of(names_, [&](const std::string &name) { return hasWord(sentence, name); });
}

} // namespace ds::mutation
