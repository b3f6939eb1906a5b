//===- Rendezvous.h - collectives and messages of several roles match -----===//
#pragma once

#include "compiler/check/schedule/Timeline.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/world/RolePeers.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace ds::check {

/// The collectives of communicators and the messages of channels that roles have come to in a run. The k-th that a role
/// comes to at one of them is the k-th of every role that it meets there.
class Rendezvous {
public:
  Rendezvous(const proto::Plan &plan, const std::string &program, plan::RolePeers &peers)
      : plan_(plan), program_(program), peers_(peers) {}

  /// A role has come to a collective, send or receive. Refuses ("progress") what is not the same for the roles that
  /// have come before, a second queue, and a message that no other role can take.
  void arrived(const Instance &instance);
  /// It has gone on, as `step`: all that it meets there have come.
  void executed(const Instance &instance, const Step &step);

  // Of the last instance that a role has executed there:
  /// Where the message came from that it has received.
  Step sender(const Instance &instance) const;
  /// What the other roles have come to.
  std::map<uint32_t, Instance> others(const Instance &instance) const;

  /// "the other ranks of communicator data, which do not come to this all_gather of ...".
  std::string absenceAt(const Instance &instance);

private:
  /// A communicator or a channel.
  struct Point {
    bool isChannel;
    uint32_t index;
    auto operator<=>(const Point &) const = default;
  };
  /// One role there.
  struct End {
    std::vector<Instance> came;
    std::vector<Step> executed;
    std::vector<uint32_t> others; ///< roles that it meets
  };

  static Point pointOf(const Instance &instance);
  std::string nameOf(const Point &point) const;
  End &endOf(uint32_t role, const Point &point);
  void requireOneQueue(const Instance &instance, const End &end) const;
  void requireEqual(const Instance &own, const Instance &theirs);
  /// What all that meet must agree on.
  const std::string &agreement(const proto::Command &command);
  std::string text(const Instance &instance) const { return check::placeOf(plan_, program_, instance); }

  const proto::Plan &plan_;
  const std::string &program_;
  plan::RolePeers &peers_;
  std::map<std::pair<Point, uint32_t>, End> ends_; // by point and role
  std::map<const proto::Command *, std::string> agreements_;
};

} // namespace ds::check
