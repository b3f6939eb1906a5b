//===- Lives.cpp - no two live buffers share bytes -------------------------===//
#include "compiler/check/Lives.h"

#include "compiler/check/Layout.h"
#include "compiler/check/Refusal.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ds::check {

namespace {

/// A buffer's bytes at one place, from the begin of one command to the end of another, in issue order.
struct Span {
  uint32_t buffer;
  uint64_t address, bytes;
  uint64_t birth, death;
};

class Spans {
public:
  Spans(const proto::Role &role, const proto::Program &program) : role_(role), program_(program) {
    uint64_t position = 1; // what is always alive is born at 0
    for (const proto::Call &call : program.calls()) {
      firstPosition_.push_back(position);
      position += uint64_t(role.routines(int(call.routine())).commands_size());
    }
    end_ = position;
    for (int c = 0; c < program.calls_size(); ++c)
      calls_[program.calls(c).routine()].push_back(c);
    for (const proto::Metric &metric : program.metrics())
      metrics_.push_back(metric.source().buffer());
  }

  std::vector<Span> all() const {
    std::vector<Span> spans;
    for (int b = 0; b < role_.buffers_size(); ++b) {
      const proto::Buffer &buffer = role_.buffers(b);
      if (buffer.scope() == proto::Buffer::PLAN)
        spans.push_back({uint32_t(b), buffer.offset(), buffer.bytes(), 0, end_});
      for (const proto::Life &life : buffer.lives())
        if (role_.programs(int(life.program())).name() == program_.name())
          add(uint32_t(b), life, spans);
    }
    return spans;
  }

private:
  uint64_t at(int call, uint32_t command) const { return firstPosition_[size_t(call)] + command; }

  const std::vector<int> &callsOf(uint32_t routine) const {
    static const std::vector<int> none;
    const auto it = calls_.find(routine);
    return it == calls_.end() ? none : it->second;
  }

  void add(uint32_t index, const proto::Life &life, std::vector<Span> &spans) const {
    const proto::Buffer &buffer = role_.buffers(int(index));
    const std::vector<int> &births = callsOf(life.birth_routine()), &deaths = callsOf(life.death_routine());
    if (births.empty() || deaths.empty())
      return;
    const bool isMetric = std::ranges::find(metrics_, index) != metrics_.end();
    const auto push = [&](uint64_t slot, int birth, int death) {
      spans.push_back({index, offsetOf(buffer, slot), buffer.bytes(), at(birth, life.birth_command()),
                       isMetric ? end_ : at(death, life.death_command())});
    };
    if (buffer.scope() == proto::Buffer::STEP)
      return push(0, births.front(), deaths.back());
    for (int birth : births)
      if (const auto death = deathOf(buffer, birth, deaths))
        push(program_.calls(birth).microbatch() % buffer.slots(), birth, *death);
  }

  /// The call in which what is born in a call dies: the same, or the last of the same micro-batch.
  std::optional<int> deathOf(const proto::Buffer &buffer, int birth, const std::vector<int> &deaths) const {
    std::optional<int> last;
    for (int death : deaths)
      if (buffer.scope() == proto::Buffer::CALL
              ? death == birth
              : program_.calls(death).microbatch() == program_.calls(birth).microbatch())
        last = death;
    return last;
  }

  const proto::Role &role_;
  const proto::Program &program_;
  std::vector<uint64_t> firstPosition_;        // by call
  std::map<uint32_t, std::vector<int>> calls_; // by routine
  std::vector<uint32_t> metrics_;              // buffers that stay alive to the end
  uint64_t end_ = 0;
};

std::string nameOf(const proto::Role &role, uint32_t buffer) {
  return "buffer " + std::to_string(buffer) + " (" + role.buffers(int(buffer)).name() + ")";
}

/// Sweeps over time with the addresses that are taken.
void sweep(const proto::Role &role, const proto::Program &program, const std::vector<Span> &spans) {
  struct Moment {
    uint64_t when;
    bool isDeath; // after the births of its command
    const Span *span;
  };
  std::vector<Moment> moments;
  for (const Span &span : spans)
    if (span.bytes > 0 && span.birth <= span.death) {
      moments.push_back({span.birth, false, &span});
      moments.push_back({span.death, true, &span});
    }
  std::ranges::stable_sort(moments, {}, [](const Moment &one) { return std::pair(one.when, one.isDeath); });
  std::map<uint64_t, const Span *> taken; // by address
  for (const auto &[when, isDeath, span] : moments) {
    if (isDeath) {
      taken.erase(span->address);
      continue;
    }
    auto next = taken.lower_bound(span->address);
    const Span *meets = next != taken.end() && next->first < span->address + span->bytes ? next->second : nullptr;
    if (!meets && next != taken.begin() &&
        std::prev(next)->second->address + std::prev(next)->second->bytes > span->address)
      meets = std::prev(next)->second;
    if (meets)
      throw Refusal{"memory", "role " + role.name() + ", program " + program.name() + ": " +
                                  nameOf(role, span->buffer) + " at byte " + std::to_string(span->address) +
                                  " takes bytes of " + nameOf(role, meets->buffer) + " at byte " +
                                  std::to_string(meets->address) + ", which is alive too"};
    taken[span->address] = span;
  }
}

} // namespace

void checkLives(const proto::Role &role, const proto::Program &program) {
  const std::vector<Span> spans = Spans(role, program).all();
  for (int arena = 0; arena < role.arenas_size(); ++arena) {
    std::vector<Span> here;
    for (const Span &span : spans)
      if (int(role.buffers(int(span.buffer)).arena()) == arena)
        here.push_back(span);
    sweep(role, program, here);
  }
}

} // namespace ds::check
