//===- Lives.cpp - no two live buffers share bytes ------------------------===//
#include "compiler/check/schedule/Lives.h"

#include "compiler/check/schedule/Refusal.h"
#include "runtime/plan/ProgramLives.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace ds::check {

namespace {

/// A copy of a buffer that is alive from the beginning of one instant to the end of another.
struct Live {
  uint32_t buffer;
  uint64_t address, bytes;
  int64_t first, last;
};

/// All copies of a run, by arena.
std::map<uint32_t, std::vector<Live>> liveCopies(const proto::Role &role, const plan::ProgramLives &lives, int program,
                                                 const std::string &space) {
  std::map<uint32_t, std::vector<Live>> copies;
  for (int b = 0; b < role.buffers_size(); ++b)
    if (const proto::Buffer &buffer = role.buffers(b);
        buffer.scope() == proto::Buffer::PLAN && plan::isIn(role, buffer, space))
      copies[buffer.arena()].push_back({uint32_t(b), buffer.offset(), buffer.bytes(), -1, lives.instants()});
  std::set<uint32_t> metrics; // which stay alive to the end
  for (const proto::Metric &metric : role.programs(program).metrics())
    metrics.insert(metric.source().buffer());
  lives.forEachStretch([&](const plan::Stretch &stretch) {
    const proto::Buffer &buffer = role.buffers(stretch.buffer);
    const auto index = uint32_t(stretch.buffer);
    copies[buffer.arena()].push_back({index, plan::slotOffset(buffer, stretch.slot), buffer.bytes(), stretch.first,
                                      metrics.contains(index) ? lives.instants() : stretch.last});
  });
  return copies;
}

class Sweep {
public:
  Sweep(const proto::Role &role, const proto::Program &program, const plan::ProgramLives &lives)
      : role_(role), program_(program), lives_(lives) {}

  /// Goes over time with the addresses that are taken.
  void run(const std::vector<Live> &copies) {
    struct Moment {
      int64_t when;
      bool isDeath; // after the births of its instant
      const Live *copy;
    };
    std::vector<Moment> moments;
    for (const Live &copy : copies)
      if (copy.bytes > 0 && copy.first <= copy.last) {
        moments.push_back({copy.first, false, &copy});
        moments.push_back({copy.last, true, &copy});
      }
    std::ranges::stable_sort(moments, {}, [](const Moment &one) { return std::pair(one.when, one.isDeath); });
    taken_.clear();
    for (const auto &[when, isDeath, copy] : moments) {
      if (isDeath) {
        taken_.erase(copy->address);
        continue;
      }
      if (const Live *other = takenIn(copy->address, copy->address + copy->bytes))
        refuse(*copy, *other);
      taken_[copy->address] = copy;
    }
  }

private:
  const Live *takenIn(uint64_t begin, uint64_t end) const {
    const auto next = taken_.lower_bound(begin);
    if (next != taken_.end() && next->first < end)
      return next->second;
    if (next != taken_.begin() && std::prev(next)->second->address + std::prev(next)->second->bytes > begin)
      return std::prev(next)->second;
    return nullptr;
  }

  std::string nameOf(const Live &copy) const {
    return "buffer " + std::to_string(copy.buffer) + " (" + role_.buffers(int(copy.buffer)).name() + ")";
  }

  std::string lifeOf(const Live &copy) const {
    if (copy.first < 0)
      return "always";
    const auto text = [&](int64_t instant) {
      const auto [call, command] = lives_.placeOf(instant);
      return "call " + std::to_string(call) + ", command " + std::to_string(command);
    };
    return "from " + text(copy.first) + " to " +
           (copy.last == lives_.instants() ? "the end of the program" : text(copy.last));
  }

  [[noreturn]] void refuse(const Live &copy, const Live &other) const {
    throw Refusal{"memory",
                  "role " + role_.name() + ", program " + program_.name() + ": " + nameOf(copy) + " at byte " +
                      std::to_string(copy.address) + " takes bytes of " + nameOf(other) + " at byte " +
                      std::to_string(other.address) + ", which is alive too",
                  nameOf(copy) + " lives " + lifeOf(copy) + ", " + nameOf(other) + " " + lifeOf(other)};
  }

  const proto::Role &role_;
  const proto::Program &program_;
  const plan::ProgramLives &lives_;
  std::map<uint64_t, const Live *> taken_; // by address
};

} // namespace

void checkLives(const proto::Role &role, int program) {
  std::set<std::string> spaces;
  for (const proto::Arena &arena : role.arenas())
    spaces.insert(arena.space());
  for (const std::string &space : spaces) {
    const plan::ProgramLives lives(role, program, space);
    Sweep sweep(role, role.programs(program), lives);
    for (const auto &[arena, copies] : liveCopies(role, lives, program, space))
      sweep.run(copies);
  }
}

} // namespace ds::check
