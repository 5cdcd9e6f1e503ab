#!/bin/sh
# Run once by the postgres image, in a new cluster: the roles, and a database of an owner that is no superuser.
set -eu
psql --set=ON_ERROR_STOP=1 --set=owner="$HANGO_OWNER_PASSWORD" --set=app="$HANGO_APP_PASSWORD" \
  --username "$POSTGRES_USER" --dbname postgres <<'SQL'
create role hango_owner login password :'owner';
create role hango_app login noinherit password :'app';
create role hango_system nologin noinherit;
grant hango_system to hango_app with inherit false, set true;
create database hango owner hango_owner;
SQL
