//===- CheckBuckets.cpp - communicators, and buckets of variables ---------===//
#include "core/DType.h"
#include "runtime/plan/format/PlanChecks.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/world/Placement.h"
#include "runtime/plan/world/RolePeers.h"

#include <cstdint>
#include <map>
#include <set>
#include <string>

namespace ds::plan {
namespace {

void checkCommunicator(const proto::Plan &plan, const proto::Communicator &communicator, const std::string &place) {
  for (int i = 0; i < communicator.axes_size(); ++i) {
    checkIndex(communicator.axes(i), plan.world().axes_size(), "axis", place);
    if (i > 0 && communicator.axes(i) <= communicator.axes(i - 1))
      refuse(place, "its axes are not ascending");
  }
}

/// Windows of a bucket make its members' pieces whole, so ranks that share them out have the same piece.
void checkAcross(const proto::Plan &plan, const proto::Bucket &bucket, const proto::Variable &variable,
                 const std::string &place) {
  if (!bucket.placement().has_window())
    return;
  const AxisSet axes = axesOf(plan, bucket.placement().window().communicator());
  for (const proto::AxisPlacement &along : variable.placement().axes())
    if (axes.contains(along.axis()))
      refuse(place, "the bucket's windows go over axis " + plan.world().axes(int(along.axis())).name() +
                        ", along which ranks have other pieces of variable " + variable.name());
}

/// Members follow one another, apart, within the bucket.
void checkMembers(const proto::Plan &plan, const proto::Bucket &bucket, const std::string &place) {
  uint64_t end = 0;
  for (int i = 0; i < bucket.members_size(); ++i) {
    const proto::BucketMember &member = bucket.members(i);
    const std::string here = place + ", member " + std::to_string(i);
    checkIndex(member.variable(), plan.variables_size(), "variable", here);
    const proto::Variable &variable = plan.variables(int(member.variable()));
    if (variable.dtype() != bucket.dtype())
      refuse(here, "variable " + variable.name() + " is " + std::string(name(DType(variable.dtype()))) +
                       ", but the bucket is " + std::string(name(DType(bucket.dtype()))));
    checkAcross(plan, bucket, variable, here);
    const uint64_t elements = pieceElements(variable);
    if (member.element() < end || elements > bucket.elements() || member.element() > bucket.elements() - elements)
      refuse(here, std::to_string(elements) + " elements of variable " + variable.name() + " at " +
                       std::to_string(member.element()) + " overlap the member before, which ends at " +
                       std::to_string(end) + ", or pass the bucket's end at " + std::to_string(bucket.elements()));
    end = member.element() + elements;
  }
}

} // namespace

void checkBuckets(const proto::Plan &plan) {
  OwnNames communicators("communicator"), buckets("bucket");
  for (int i = 0; i < plan.communicators_size(); ++i) {
    const proto::Communicator &communicator = plan.communicators(i);
    communicators.add(communicator.name(), i, describe("communicator", i, ""));
    checkCommunicator(plan, communicator, describe("communicator", i, communicator.name()));
  }
  for (int i = 0; i < plan.variables_size(); ++i)
    checkPlacement(plan, plan.variables(i), describe("variable", i, plan.variables(i).name()));
  for (int i = 0; i < plan.buckets_size(); ++i) {
    const proto::Bucket &bucket = plan.buckets(i);
    buckets.add(bucket.name(), i, describe("bucket", i, ""));
    const std::string place = describe("bucket", i, bucket.name());
    checkDType(bucket.dtype(), place);
    if (bucket.elements() > uint64_t(1) << 59)
      refuse(place, "its " + std::to_string(bucket.elements()) + " elements are more than 2^59");
    checkPlacement(plan, bucket, place);
    checkMembers(plan, bucket, place);
  }
}

/// A variable that several roles hold may lie in a bucket of each, but for one role it lies in one place.
void checkHeldBuckets(const proto::Plan &plan, const proto::Role &role) {
  std::set<uint32_t> held;
  for (const proto::Buffer &buffer : role.buffers())
    if (buffer.has_bucket())
      held.insert(buffer.bucket());
  std::map<uint32_t, uint32_t> bucketOf; // by variable
  for (uint32_t bucket : held)
    for (const proto::BucketMember &member : plan.buckets(int(bucket)).members())
      if (const auto [first, isNew] = bucketOf.try_emplace(member.variable(), bucket); !isNew)
        refuse(
            describe("bucket", bucket, plan.buckets(int(bucket)).name()),
            "variable " + plan.variables(int(member.variable())).name() + " belongs to two buckets of role " +
                role.name() + ", or twice to this one" +
                note(describe("bucket", first->second, plan.buckets(int(first->second)).name()) + " holds it first"));
}

/// Slices of a bucket make it whole: where roles meet in its communicator, all of them have slices of it or none has.
void checkSlices(const proto::Plan &plan, RolePeers &peers) {
  std::map<uint32_t, std::set<int>> slicedBy; // by bucket: roles
  for (int r = 0; r < plan.roles_size(); ++r)
    for (const proto::Buffer &buffer : plan.roles(r).buffers())
      if (holdsWindow(plan, buffer))
        slicedBy[buffer.bucket()].insert(r);
  for (const auto &[index, roles] : slicedBy) {
    const proto::Bucket &bucket = plan.buckets(int(index));
    const uint32_t communicator = bucket.placement().window().communicator();
    for (const auto &[a, b] : peers.inCommunicator(communicator))
      if (roles.contains(a) != roles.contains(b))
        refuse(describe("bucket", index, bucket.name()),
               "its slices are counted over the ranks of communicator " + plan.communicators(int(communicator)).name() +
                   ", but of the roles that meet there " + plan.roles(roles.contains(a) ? a : b).name() +
                   " has slices of it and " + plan.roles(roles.contains(a) ? b : a).name() + " has none");
  }
}

} // namespace ds::plan
