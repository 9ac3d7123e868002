# One image for every role: `pumice extender | controllers | webhooks | all`.

FROM python:3.13-slim AS build
RUN pip install --no-cache-dir uv==0.13.8
ENV UV_COMPILE_BYTECODE=1 UV_LINK_MODE=copy UV_PYTHON_DOWNLOADS=never
WORKDIR /src
# The dependencies change less often than the code: a layer of their own.
COPY pyproject.toml uv.lock ./
RUN UV_PROJECT_ENVIRONMENT=/opt/pumice uv sync --frozen --no-dev --no-install-project
COPY README.md LICENSE ./
COPY app app
COPY manifests manifests
COPY scheduler-config scheduler-config
RUN UV_PROJECT_ENVIRONMENT=/opt/pumice uv sync --frozen --no-dev --no-editable

FROM python:3.13-slim
RUN useradd --system --uid 65532 --user-group --no-create-home pumice
COPY --from=build /opt/pumice /opt/pumice
ENV PATH=/opt/pumice/bin:$PATH PYTHONUNBUFFERED=1
USER 65532:65532
WORKDIR /
ENTRYPOINT ["pumice"]
