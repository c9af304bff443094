# The controller of `run.py kubernetes --controller`: run.py, what it needs, and kubectl. In the checkout's top folder:
#
#   docker build -f scripts/controller.Dockerfile -t registry.example.com/bench/controller:1 .
#
# kubectl is to be no more than one minor version from the cluster's: --build-arg KUBECTL_IMAGE=registry.k8s.io/kubectl:v1.33.5
ARG BASE_IMAGE=python:3.12-slim-bookworm
ARG KUBECTL_IMAGE=registry.k8s.io/kubectl:v1.34.1

FROM ${KUBECTL_IMAGE} AS kubectl

FROM ${BASE_IMAGE}
ENV PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 PIP_BREAK_SYSTEM_PACKAGES=1 PIP_ROOT_USER_ACTION=ignore
COPY --from=kubectl /bin/kubectl /usr/local/bin/kubectl
COPY training/requirements.txt /flagperf/training/requirements.txt
RUN python3 -m pip install --no-cache-dir -r /flagperf/training/requirements.txt
COPY training /flagperf/training
USER 1000:1000
WORKDIR /flagperf/training
