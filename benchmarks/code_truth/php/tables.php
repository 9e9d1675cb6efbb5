<?php

// Runs an application's migrations on SQLite in memory, and prints the resulting tables.
//
// Arguments: as application.php has them.
// Output: {"tables": {name: [{name, type, notnull}]}, "failed": {migration: message}, "refused": [message], "version": text}.
//
// A statement that SQLite refuses (because it is another database's) is reported, and the migration goes on. An added column
// without a default gets an empty default, because SQLite cannot add it to an existing table otherwise.

require __DIR__.'/application.php';

use Illuminate\Database\Connection;
use Illuminate\Database\QueryException;
use Illuminate\Database\Schema\Grammars\SQLiteGrammar;
use Illuminate\Database\SQLiteConnection;
use Illuminate\Support\Fluent;

final class Refused
{
    public static array $messages = [];
}

final class TruthGrammar extends SQLiteGrammar
{
    protected function modifyDefault(Illuminate\Database\Schema\Blueprint $blueprint, Fluent $column)
    {
        $needed = ! $blueprint->creating() && ! $column->change && ! $column->nullable && is_null($column->default)
            && is_null($column->virtualAs) && is_null($column->storedAs);

        if ($column->autoIncrement && ! $blueprint->creating()) {
            return " default 0";
        }

        return $needed ? " default ''" : parent::modifyDefault($blueprint, $column);
    }

    /** Drops a column with its indexes, as MySQL does. */
    public function compileDropColumn(Illuminate\Database\Schema\Blueprint $blueprint, Fluent $command, $connection = null)
    {
        $table = $blueprint->getTable();
        $connection = Illuminate\Support\Facades\DB::connection();
        $statements = [];
        foreach ($connection->select("select name, origin from pragma_index_list(?)", [$table]) as $index) {
            $columns = array_column($connection->select('select name from pragma_index_info(?)', [$index->name]), 'name');
            if ($index->origin === 'c' && array_intersect($columns, $command->columns)) {
                $statements[] = 'drop index '.$this->wrap($index->name);
            }
        }
        $columns = $connection->select('select name, pk from pragma_table_info(?)', [$table]);
        if (array_filter($columns, fn ($column) => $column->pk && in_array($column->name, $command->columns))) {
            $kept = $this->columnize(array_diff(array_column($columns, 'name'), $command->columns));

            return [
                ...$statements,
                "create table without_key as select {$kept} from ".$this->wrapTable($table),
                'drop table '.$this->wrapTable($table),
                'alter table without_key rename to '.$this->wrapTable($table),
            ];
        }

        return [...$statements, ...(array) parent::compileDropColumn($blueprint, $command, $connection)];
    }

    protected function modifyIncrement(Illuminate\Database\Schema\Blueprint $blueprint, Fluent $column)
    {
        return $blueprint->creating() ? parent::modifyIncrement($blueprint, $column) : null;
    }
}

final class NoSchemaManager
{
    public function __call(string $name, array $given)
    {
        return str_starts_with($name, 'has') ? false : (preg_match('/Details$|^introspect/', $name) ? $this : []);
    }
}

/** Migrations may call commands and write logs, which are not there. */
final class Nothing
{
    public function __call(string $name, array $given)
    {
        return 0;
    }
}

final class TruthConnection extends SQLiteConnection
{
    protected function getDefaultSchemaGrammar()
    {
        $grammar = new TruthGrammar($this);
        if (method_exists($grammar, 'setConnection')) {
            $grammar->setConnection($this);
        }

        return method_exists($this, 'withTablePrefix') ? $this->withTablePrefix($grammar) : $grammar;
    }

    /** SQLite takes the name of a column that is gone for a text, and then alters nothing any more. */
    private function dropIndexesOfNothing(): void
    {
        $sql = "select m.name from sqlite_master m, pragma_index_info(m.name) i where m.type = 'index' and i.name is null";
        foreach ($this->getPdo()->query($sql)->fetchAll(PDO::FETCH_COLUMN) as $index) {
            $this->getPdo()->exec("drop index \"{$index}\"");
        }
    }

    /** What doctrine/dbal told before Laravel 11. */
    public function getDoctrineSchemaManager()
    {
        return new NoSchemaManager;
    }

    protected function run($query, $bindings, Closure $callback)
    {
        if (str_starts_with($query, 'alter table')) {
            $this->dropIndexesOfNothing();
        }
        try {
            return parent::run($query, $bindings, $callback);
        } catch (QueryException $error) {
            Refused::$messages[] = $error->getMessage();

            return [];
        }
    }
}

$failed = [];
Connection::resolverFor('sqlite', fn (...$given) => new TruthConnection(...$given));
$app->make('db')->purge();
$app->instance(Illuminate\Contracts\Console\Kernel::class, new Nothing);
$app->instance('log', new Nothing);
$migrator = $app->make('migrator');
$paths = array_unique([$app->databasePath('migrations'), ...$migrator->paths()]);
foreach ($migrator->getMigrationFiles($paths) as $name => $path) {
    $before = get_declared_classes();
    $app->instance('config', $config);
    $config->set('database.default', 'sqlite');
    attempt($name, function () use ($path, $before) {
        $migration = require CodeTruth\TypedConstants::without($path, file_get_contents($path));
        if (! is_object($migration)) {
            $new = array_filter(
                array_diff(get_declared_classes(), $before),
                fn ($class) => is_subclass_of($class, Illuminate\Database\Migrations\Migration::class),
            );
            $class = end($new);
            $migration = new $class;
        }
        $migration->up();
    });
}
$connection = $app->make('db')->connection('sqlite');
$tables = [];
foreach ($connection->select("select name from sqlite_master where type = 'table' and name not like 'sqlite_%'") as $row) {
    $tables[$row->name] = $connection->select('select name, type, "notnull" from pragma_table_xinfo(?)', [$row->name]);
}
echo json_encode([
    'tables' => (object) $tables,
    'failed' => (object) $failed,
    'refused' => Refused::$messages,
    'version' => Illuminate\Foundation\Application::VERSION,
], JSON_UNESCAPED_SLASHES | JSON_INVALID_UTF8_SUBSTITUTE);
