//===- ProgramLives.h - lives of buffers over the calls of a program ------===//
#pragma once

#include "runtime/plan/plan.pb.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

namespace ds::plan {

/// Bytes by Buffer::Category.
using CategoryBytes = std::array<uint64_t, proto::Buffer::Category_ARRAYSIZE>;

/// A buffer that is alive at some instant, all its live slots together.
struct LiveBuffer {
  int buffer; // Role.buffers
  uint64_t bytes;
};

/// One copy of a buffer while it is alive: in every instant from `first` to `last`.
struct Stretch {
  int buffer; // Role.buffers
  uint32_t slot;
  int64_t first, last; // instants
};

/// The bytes of a space over one run of a program, of a plan that validatePlan() accepts. Time is counted in instants,
/// one a command, calls laid end to end in the order of the program.
class ProgramLives {
public:
  ProgramLives(const proto::Role &role, int program, std::string_view space);

  int64_t instants() const { return callBegins_.back(); }
  int64_t instantOf(int call, int command) const { return callBegins_[size_t(call)] + command; }

  /// (call, command) of an instant.
  std::pair<int, int> placeOf(int64_t instant) const;

  /// Visits the instants in order, with the bytes alive in each; what is resident counts.
  void walk(const std::function<void(int call, int command, const CategoryBytes &alive)> &visit) const;

  /// What is alive while a command runs, beside what is resident.
  std::vector<LiveBuffer> aliveAt(int call, int command) const;

  /// Visits every life but those of residents. All that one entry of Buffer.lives stands for follow each other, in the
  /// order of their births.
  void forEachStretch(const std::function<void(const Stretch &)> &visit) const;

private:
  struct Span {
    int birthCall, deathCall;
  };
  /// Lives that begin and end in the same calls.
  struct Family {
    std::vector<Span> spans;
    std::vector<std::pair<int, const proto::Life *>> lives; // buffer, life
  };

  std::vector<int> callsOf(uint32_t routine) const;
  std::vector<Span> spansOf(proto::Buffer::Scope scope, uint32_t birth, uint32_t death) const;
  int commandsOf(int call) const;

  const proto::Role &role_;
  const proto::Program &program_;
  CategoryBytes resident_{};
  std::vector<Family> families_;
  std::vector<std::vector<size_t>> bornIn_, dieIn_; // families by call
  std::vector<int64_t> callBegins_;                 // of each call, and the end
};

/// Where a slot of a buffer, or its copy for a micro-batch, begins in its arena.
uint64_t slotOffset(const proto::Buffer &buffer, uint64_t slot);

/// Whether a buffer of the role lies in a space.
bool isIn(const proto::Role &role, const proto::Buffer &buffer, std::string_view space);

} // namespace ds::plan
