//===- CombineLengths.cpp - plans for several sizes become one --------------===//
//
//   plan of 128:  | state | its constants | the rest |
//   plan of 512:  | state | its constants | the rest    |
//   combined:     | state | constants of 128 | of 512 | the rest of 128, or of 512 |
//
//===----------------------------------------------------------------------===//
#include "compiler/driver/CombineLengths.h"

#include "core/Error.h"
#include "runtime/plan/format/Lengths.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

using namespace ds;
using namespace ds::driver;
namespace proto = ds::plan::proto;

namespace {

bool isConstant(const proto::Variable &variable) { return variable.kind() == proto::Variable::CONSTANT; }
bool isConstant(const proto::Plan &plan, const proto::Buffer &buffer) {
  return buffer.has_variable() && isConstant(plan.variables(int(buffer.variable())));
}

class Combination {
public:
  Combination(const std::string &dimension, const std::vector<int64_t> &sizes, std::vector<proto::Plan> plans)
      : dimension_(dimension), sizes_(sizes), plans_(std::move(plans)) {}

  proto::Plan run() {
    for (int r = 0; r < plans_.back().roles_size(); ++r)
      shareQueuesAndArenas(r);
    all_ = plans_.back();
    for (size_t i = 0; i + 1 < plans_.size(); ++i)
      requireSameState(i);
    all_.set_dimension(dimension_);
    all_.set_size(uint64_t(sizes_.back()));
    for (size_t i = 0; i + 1 < plans_.size(); ++i) {
      proto::Length &length = *all_.add_shorter();
      length.set_size(uint64_t(sizes_[i]));
      *length.mutable_inputs() = plans_[i].inputs();
      *length.mutable_reference() = plans_[i].reference();
      if (plans_[i].has_pipeline())
        *length.mutable_pipeline() = plans_[i].pipeline();
      addConstants(i);
      addCodes(i);
    }
    for (int r = 0; r < all_.roles_size(); ++r)
      combineRole(r);
    return std::move(all_);
  }

private:
  [[noreturn]] void refuse(size_t i, const std::string &why) const {
    throw Error("--dim " + dimension_ + ": " + why + ", so the sizes " + std::to_string(sizes_[i]) + " and " +
                std::to_string(sizes_.back()) + " cannot share one state; compile a plan for each");
  }

  //===-- what must be the same ---------------------------------------------===//

  void requireSameState(size_t i) const {
    const proto::Plan &one = plans_[i];
    std::vector<const proto::Variable *> own, largest;
    for (auto [plan, list] : {std::pair(&one, &own), std::pair(&all_, &largest)})
      for (const proto::Variable &variable : plan->variables())
        if (!isConstant(variable))
          list->push_back(&variable);
    for (size_t v = 0; v < std::max(own.size(), largest.size()); ++v)
      if (v >= own.size() || v >= largest.size() || own[v]->SerializeAsString() != largest[v]->SerializeAsString())
        refuse(i, "variable " + (v < own.size() ? own : largest)[v]->name() + " depends on it");
    const auto same = [](const auto &a, const auto &b) {
      return std::ranges::equal(
          a, b, {}, [](const auto &x) { return x.SerializeAsString(); },
          [](const auto &x) { return x.SerializeAsString(); });
    };
    if (!same(one.weight_files(), all_.weight_files()) || !same(one.communicators(), all_.communicators()) ||
        !same(one.channels(), all_.channels()) || layoutOf(one) != layoutOf(all_))
      refuse(i, "where state lies, and what ranks communicate, depends on it");
  }

  /// A size whose tensors are too small to leave the device has no queue for that, and no arena elsewhere: each plan
  /// gets those of all.
  void shareQueuesAndArenas(int r) {
    google::protobuf::RepeatedPtrField<proto::Queue> queues;
    google::protobuf::RepeatedPtrField<proto::Arena> arenas;
    const auto numberIn = [](auto &list, const auto &wanted, auto name) {
      const auto found = std::ranges::find_if(list, [&](const auto &each) { return name(each) == name(wanted); });
      const auto number = uint32_t(found - list.begin());
      if (found == list.end())
        *list.Add() = wanted;
      return number;
    };
    std::vector<plan::Renumbering> numbers(plans_.size());
    for (size_t i = plans_.size(); i-- > 0;) { // the largest first
      for (const proto::Queue &queue : plans_[i].roles(r).queues())
        numbers[i].queues.push_back(numberIn(queues, queue, [](const proto::Queue &q) { return q.name(); }));
      for (const proto::Arena &arena : plans_[i].roles(r).arenas())
        numbers[i].arenas.push_back(numberIn(arenas, arena, [](const proto::Arena &a) { return a.space(); }));
    }
    for (size_t i = 0; i < plans_.size(); ++i) {
      proto::Role &role = *plans_[i].mutable_roles(r);
      plan::renumber(role, numbers[i]);
      *role.mutable_queues() = queues;
      const auto own = role.arenas();
      *role.mutable_arenas() = arenas;
      for (proto::Arena &arena : *role.mutable_arenas()) {
        arena.clear_bytes();
        arena.clear_peak_live_bytes();
      }
      for (int a = 0; a < own.size(); ++a)
        *role.mutable_arenas(int(numbers[i].arenas[size_t(a)])) = own[a];
    }
  }

  /// Where everything lies that outlives a step, in words of the file.
  static std::vector<std::string> layoutOf(const proto::Plan &plan) {
    std::vector<std::string> layout;
    for (proto::Bucket bucket : plan.buckets()) {
      bucket.clear_gathered(); // for people
      layout.push_back(bucket.SerializeAsString());
    }
    for (const proto::Role &role : plan.roles()) {
      for (const proto::Arena &arena : role.arenas())
        layout.push_back(role.name() + arena.space());
      std::map<uint64_t, std::string> state; // by place
      for (const proto::Buffer &buffer : role.buffers())
        if (buffer.scope() == proto::Buffer::PLAN && !isConstant(plan, buffer))
          state[uint64_t(buffer.arena()) << 48 | buffer.offset()] = textOf(role, buffer);
      for (auto &[place, text] : state)
        layout.push_back(std::move(text));
    }
    return layout;
  }

  /// Without the number of the buffer that it is the next of, which is the plan's own.
  static std::string textOf(const proto::Role &role, proto::Buffer buffer) {
    if (!buffer.has_next_of())
      return buffer.SerializeAsString();
    const uint64_t place = role.buffers(int(buffer.next_of())).offset();
    buffer.set_next_of(0);
    return buffer.SerializeAsString() + std::to_string(place);
  }

  //===-- what is added up ----------------------------------------------------===//

  /// Constants become the last variables, with the size behind their names.
  void addConstants(size_t i) {
    std::vector<uint32_t> &numbers = variables_.emplace_back();
    std::vector<uint32_t> shared; // of what is no constant, in order
    for (int v = 0; v < all_.variables_size(); ++v)
      if (!isConstant(all_.variables(v)))
        shared.push_back(uint32_t(v));
    auto next = shared.begin();
    for (const proto::Variable &variable : plans_[i].variables()) {
      numbers.push_back(isConstant(variable) ? uint32_t(all_.variables_size()) : *next++);
      if (!isConstant(variable))
        continue;
      proto::Variable &added = *all_.add_variables();
      added = variable;
      added.set_name(variable.name() + "@" + std::to_string(sizes_[i]));
    }
  }

  /// Calls of two sizes that are alike have one code, and its name is a hash of them.
  void addCodes(size_t i) {
    std::vector<uint32_t> &numbers = codes_.emplace_back();
    for (const proto::DeviceCode &code : plans_[i].codes()) {
      const auto known = std::ranges::find(all_.codes(), code.name(), &proto::DeviceCode::name);
      numbers.push_back(uint32_t(known - all_.codes().begin()));
      if (known == all_.codes().end())
        *all_.add_codes() = code;
    }
  }

  /// Bytes of an arena: of state, of constants, and of the rest.
  using Zones = std::array<uint64_t, 3>;

  static Zones zonesOf(const proto::Plan &plan, const proto::Role &role, uint32_t arena) {
    const uint64_t alignment = plan.machine().alignment();
    std::array<uint64_t, 2> ends{};
    for (const proto::Buffer &buffer : role.buffers())
      if (buffer.scope() == proto::Buffer::PLAN && buffer.arena() == arena) {
        uint64_t &end = ends[isConstant(plan, buffer)];
        end = std::max(end, (buffer.offset() + buffer.bytes() + alignment - 1) / alignment * alignment);
      }
    const uint64_t resident = std::max(ends[0], ends[1]);
    return {ends[0], resident - ends[0], role.arenas(int(arena)).bytes() - resident};
  }

  /// Moves what one size has behind the constants of those before it, or of all.
  void placeRole(int r) {
    for (int a = 0; a < all_.roles(r).arenas_size(); ++a) {
      std::vector<Zones> zones;
      uint64_t constants = 0, rest = 0, peak = 0;
      for (const proto::Plan &plan : plans_) {
        zones.push_back(zonesOf(plan, plan.roles(r), uint32_t(a)));
        constants += zones.back()[1];
        rest = std::max(rest, zones.back()[2]);
      }
      uint64_t before = 0;
      for (size_t i = 0; i < plans_.size(); ++i) {
        peak = std::max(peak, plans_[i].roles(r).arenas(a).peak_live_bytes() + constants - zones[i][1]);
        for (proto::Buffer &buffer : *plans_[i].mutable_roles(r)->mutable_buffers()) {
          if (buffer.arena() != uint32_t(a))
            continue;
          const bool resident = buffer.scope() == proto::Buffer::PLAN;
          const uint64_t by = !resident ? constants - zones[i][1] : isConstant(plans_[i], buffer) ? before : 0;
          buffer.set_offset(buffer.offset() + by);
          for (uint64_t &offset : *buffer.mutable_slot_offsets())
            offset += by;
        }
        before += zones[i][1];
      }
      proto::Arena &arena = *all_.mutable_roles(r)->mutable_arenas(a);
      arena.set_bytes(zones[0][0] + constants + rest);
      arena.set_peak_live_bytes(peak);
    }
  }

  void combineRole(int r) {
    placeRole(r);
    proto::Role &role = *all_.mutable_roles(r);
    role.clear_buffers();
    std::map<Held, uint32_t> shared;
    for (size_t i = plans_.size(); i-- > 0;) // state is alike in all
      for (const proto::Buffer &buffer : plans_[i].roles(r).buffers())
        if (buffer.scope() == proto::Buffer::PLAN && shared.try_emplace(held(i, r, buffer), shared.size()).second) {
          *role.add_buffers() = buffer;
          if (buffer.has_variable())
            role.mutable_buffers()->rbegin()->set_variable(variableOf(i, buffer));
        }
    const proto::Role &largest = plans_.back().roles(r);
    for (const proto::Buffer &buffer : largest.buffers())
      if (buffer.has_next_of())
        role.mutable_buffers(int(shared.at(held(plans_.size() - 1, r, buffer))))
            ->set_next_of(shared.at(held(plans_.size() - 1, r, largest.buffers(int(buffer.next_of())))));
    for (size_t i = 0; i < plans_.size(); ++i) {
      proto::Role own = takeOwn(i, r, shared);
      if (i + 1 < plans_.size()) {
        *all_.mutable_shorter(int(i))->add_roles() = std::move(own);
        continue;
      }
      role.mutable_buffers()->MergeFrom(own.buffers());
      *role.mutable_routines() = own.routines();
      *role.mutable_programs() = own.programs();
    }
  }

  uint32_t variableOf(size_t i, const proto::Buffer &buffer) const {
    return i < variables_.size() ? variables_[i][buffer.variable()] : buffer.variable();
  }

  /// What a buffer is for: whether it is the next of another, holds a bucket; then of which, and the arena.
  using Held = std::tuple<bool, bool, uint32_t, uint32_t>;

  Held held(size_t i, int r, const proto::Buffer &buffer) const {
    if (buffer.has_next_of()) {
      Held next = held(i, r, plans_[i].roles(r).buffers(int(buffer.next_of())));
      std::get<0>(next) = true;
      return next;
    }
    return {false, buffer.has_bucket(), buffer.has_bucket() ? buffer.bucket() : variableOf(i, buffer), buffer.arena()};
  }

  /// What is not shared of a role, with its buffers numbered on from those that are.
  proto::Role takeOwn(size_t i, int r, const std::map<Held, uint32_t> &shared) const {
    const proto::Role &from = plans_[i].roles(r);
    proto::Role own;
    plan::Renumbering numbers;
    if (i < codes_.size())
      numbers.codes = codes_[i];
    for (const proto::Buffer &buffer : from.buffers()) {
      const bool resident = buffer.scope() == proto::Buffer::PLAN;
      numbers.buffers.push_back(resident ? shared.at(held(i, r, buffer))
                                         : uint32_t(shared.size()) + own.buffers_size());
      if (!resident)
        *own.add_buffers() = buffer;
    }
    *own.mutable_events() = from.events();
    *own.mutable_routines() = from.routines();
    *own.mutable_programs() = from.programs();
    plan::renumber(own, numbers);
    return own;
  }

  const std::string &dimension_;
  const std::vector<int64_t> &sizes_;
  std::vector<proto::Plan> plans_;
  std::vector<std::vector<uint32_t>> variables_, codes_; // of each shorter plan: their numbers in all_
  proto::Plan all_;
};

} // namespace

proto::Plan ds::driver::combineLengths(const std::string &dimension, const std::vector<int64_t> &sizes,
                                       std::vector<proto::Plan> plans) {
  return Combination(dimension, sizes, std::move(plans)).run();
}
