# shardwright in a container, as a user without rights. Nothing of it needs a GPU or a network. Without a command it serves
# its HTTP API on every address of the container, and starts only with a token that clients have to show.
#   docker build -t shardwright .
#   docker run --rm -p 8765:8765 -e SHARDWRIGHT_SERVE_TOKEN=$(openssl rand -hex 24) shardwright
#   docker run --rm shardwright plan "Serve Llama-3.1-70B on 8 H100, 2k in / 256 out"
#   docker run --rm -i shardwright validate - < plan.json

FROM python:3.13-slim AS build
WORKDIR /source
COPY . .
RUN python -m venv /opt/shardwright && /opt/shardwright/bin/pip install --no-cache-dir .

FROM python:3.13-slim
RUN useradd --system --uid 10001 --create-home shardwright
COPY --from=build /opt/shardwright /opt/shardwright
ENV PATH=/opt/shardwright/bin:$PATH PYTHONDONTWRITEBYTECODE=1
USER 10001
WORKDIR /plans
EXPOSE 8765
ENTRYPOINT ["shardwright"]
CMD ["serve", "--host", "0.0.0.0"]
