//===- Meetings.h - where roles wait for each other -----------------------===//
#pragma once

#include "compiler/check/Timeline.h"
#include "runtime/plan/RolePeers.h"
#include "runtime/plan/plan.pb.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace ds::check {

/// The collectives of communicators and the messages of channels that the roles have come to in a run. The k-th that a
/// role comes to at one place is the k-th of every role that it meets there.
class Meetings {
public:
  Meetings(const proto::Plan &plan, const std::string &program);

  /// Whether a role may go on with a collective, send or receive that it has reached: all that it meets there have
  /// come, and what it receives has been sent, so that a plan that comes to its end does so with senders that wait for
  /// their receivers. `isNew`: it has just come. Refuses what does not match what another role has come to.
  bool goOn(uint32_t role, const Instance &instance, bool isNew);

  /// Where the message came from that the role has just gone on to receive.
  Step sender(uint32_t role, const Instance &instance) const;
  /// What the other roles have come to where the role has just gone on.
  std::map<uint32_t, Instance> others(uint32_t role, const Instance &instance) const;
  /// Tells which step of its role a send that has just gone on is.
  void sent(uint32_t role, const Instance &instance, size_t step);

  /// "the other ranks of communicator data, which do not come to this all_gather of ...".
  std::string absenceAt(const Instance &instance) const;

private:
  /// One role at one communicator or channel.
  struct End {
    std::vector<Instance> came;
    size_t wentOn = 0;
    std::vector<size_t> steps; ///< of sends that have gone on
    std::vector<uint32_t> others;
  };
  using Place = std::pair<bool, uint32_t>; ///< whether a channel, and its index

  static Place placeOf(const Instance &instance);
  std::string nameOf(const Place &place) const;
  End &endOf(uint32_t role, const Place &place);
  void requireOneQueue(uint32_t role, const Instance &instance, const End &end) const;
  void requireEqual(uint32_t role, const Instance &own, uint32_t other, const Instance &theirs);
  /// What all that meet must agree on.
  const std::string &agreement(const proto::Command &command);
  std::string text(uint32_t role, const Instance &instance) const {
    return check::placeOf(plan_, plan_.roles(int(role)), program_, instance);
  }

  const proto::Plan &plan_;
  const std::string &program_;
  plan::RolePeers roles_;
  std::map<std::pair<Place, uint32_t>, End> ends_; // by place and role
  std::map<const proto::Command *, std::string> agreements_;
};

} // namespace ds::check
