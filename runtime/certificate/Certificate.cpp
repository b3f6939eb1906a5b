//===- Certificate.cpp - --certify ----------------------------------------===//
#include "runtime/certificate/Certificate.h"

#include "core/AtomicFile.h"
#include "core/Error.h"
#include "core/Files.h"
#include "core/Sha256.h"
#include "runtime/comm/Communicator.h"
#include "runtime/executor/Traffic.h"
#include "runtime/session/StepReport.h"

#include <nlohmann/json.hpp>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace ds::runtime {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t largest = size_t(64) << 20; // bytes; measurements add up

Json read(const std::string &path) {
  const std::optional<std::string> text = readWhole(path, largest);
  if (!text)
    throw Error("--certify " + path + " cannot be read: " + std::strerror(errno));
  Json certificate = Json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!certificate.is_object() || certificate.value("format", Json()) != "deepstatic certificate")
    throw Error("--certify " + path + " is no certificate; ds-opt verify PLAN --certificate FILE writes one");
  if (certificate.value("version", Json()) != 1)
    throw Error("--certify " + path + " is a certificate of a newer version; this ds-run reads version 1");
  if (!certificate.value("measured", Json()).is_array() || !certificate.value("plan", Json()).is_object() ||
      !certificate["plan"].value("sha256", Json()).is_string())
    throw Error("--certify " + path +
                " is a damaged certificate; ds-opt verify PLAN --certificate FILE writes it anew");
  return certificate;
}

std::string hashOf(Json certificate) {
  certificate.erase("measured");
  const std::string text = certificate.dump();
  return hexOf(sha256(std::as_bytes(std::span(text))));
}

Json trafficOf(const Traffic &traffic) {
  Json kinds = Json::object();
  for (size_t kind = 0; kind < traffic.collectives.size(); ++kind)
    kinds[name(CollectiveKind(kind))] = traffic.collectives[kind];
  kinds["send"] = traffic.sent;
  kinds["recv"] = traffic.received;
  return kinds;
}

} // namespace

Certificate::Certificate(std::string path, const std::string &planPath) : path_(std::move(path)) {
  const Json certificate = read(path_);
  hash_ = hashOf(certificate);
  planHash_ = certificate["plan"]["sha256"];
  if (const std::string has = hexOf(sha256OfFile(planPath)); has != planHash_)
    throw Error("--certify " + path_ + " is the certificate of another plan, or " + planPath +
                " was edited since: its SHA-256 begins with " + has.substr(0, 12) + ", the certificate's with " +
                planHash_.substr(0, 12) + "; ds-opt verify judges it anew");
}

void MeasuredRun::stepDone(const StepReport &report) noexcept {
  ++steps_;
  if (report.loss && losses_.size() < mostLosses)
    losses_.push_back(report.loss->asDouble());
  next_.stepDone(report);
}

void Certificate::append(const MeasuredRun &run, const SummaryReport &summary) const {
  Json certificate = read(path_);
  certificate["measured"].push_back({{"ds_run", DS_VERSION},
                                     {"steps", run.steps()},
                                     {"losses", run.losses()},
                                     {"rank", summary.rank},
                                     {"device_bytes", summary.deviceBytes},
                                     {"device_touched_bytes", summary.deviceTouchedBytes},
                                     {"host_bytes", summary.hostBytes},
                                     {"wire_bytes_per_step", trafficOf(summary.trafficPerStep)}});
  writeFileAtomically(path_, certificate.dump(2) + "\n");
}

} // namespace ds::runtime
